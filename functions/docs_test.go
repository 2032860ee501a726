package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// pages are README.md and docs/*.md, by their path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	testworld.Must(t, err)
	all := make(map[string]string, len(files)+1)
	for _, file := range append(files, "../README.md") {
		text, err := os.ReadFile(file)
		testworld.Must(t, err)
		all[strings.TrimPrefix(filepath.ToSlash(file), "../")] = string(text)
	}
	return all
}

// shell is a block of commands, or of their output, on a page.
type shell struct {
	section string // heading above it, with the text of the section before its first block
	text    string
	output  bool
}

var (
	fence    = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")
	sections = regexp.MustCompile(`(?m)^## `)
)

// shells returns the blocks of a page that a reader can type, or would see.
func shells(page string) (all []shell) {
	parts := sections.Split(page, -1)
	for i, part := range parts {
		section := parts[0]
		if i > 0 {
			section += part
		}
		for _, block := range fence.FindAllStringSubmatch(part, -1) {
			if block[1] == "" || block[1] == "sh" {
				all = append(all, shell{section, block[2], block[1] == ""})
			}
		}
	}
	return all
}

// commands returns the lines of a block that are typed: every line of an sh block, and the text
// after $ in others.
func (s shell) commands() (typed []string) {
	heredoc := regexp.MustCompile(`(?ms)<<'(\w+)'$.*?^\w+$`)
	for line := range strings.Lines(strings.ReplaceAll(heredoc.ReplaceAllString(s.text, ""), "\\\n", " ")) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " # ")
		if after, prompted := strings.CutPrefix(line, "$ "); prompted {
			line = after
		} else if s.output {
			continue
		}
		for _, command := range regexp.MustCompile(` && | \| | & | &$|"\$\(`).Split(line, -1) {
			typed = append(typed, strings.TrimSpace(command))
		}
	}
	return typed
}

// TestEveryCommandOnAPageExists: each command of feedscale or make on a page names a subcommand,
// flags or a target that exists, even if no test runs it.
func TestEveryCommandOnAPageExists(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../Makefile")
	testworld.Must(t, err)
	helps := make(map[string]string)
	help := func(name string) string {
		if _, asked := helps[name]; !asked {
			r := command(t, t.TempDir(), nil, name, "--help")
			if r.Status != 0 {
				t.Errorf("feedscale %s: %+v", name, r)
			}
			helps[name] = r.Stdout
		}
		return helps[name]
	}
	assigned := regexp.MustCompile(`^(\w+=('[^']*'|\S*) +)+`)
	flags := regexp.MustCompile(`(?:^| )(--?[a-z][a-z-]*)`)
	checked := 0
	for name, page := range pages(t) {
		for _, block := range shells(page) {
			for _, typed := range block.commands() {
				words := strings.Fields(assigned.ReplaceAllString(typed, ""))
				if len(words) == 0 {
					continue
				}
				checked++
				switch program := filepath.Base(words[0]); {
				case program == "feedscale" && len(words) > 1 && !strings.HasPrefix(words[1], "-"):
					said := help(words[1])
					for _, flag := range flags.FindAllStringSubmatch(strings.Join(words[2:], " "), -1) {
						if !regexp.MustCompile(`(^|[ ,])` + flag[1] + `([ ,=]|$)`).MatchString(strings.ReplaceAll(said, "\n", " ")) {
							t.Errorf("%s: %s: there is no %s", name, typed, flag[1])
						}
					}
				case program == "make":
					for _, target := range words[1:] {
						if !strings.HasPrefix(target, "-") && !strings.Contains(target, "=") && !strings.Contains(string(makefile), "\n"+target+":") {
							t.Errorf("%s: %s: there is no target %s", name, typed, target)
						}
					}
				default:
					checked--
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d commands were found", checked)
	}
}

// anchor returns the anchor of a heading, as GitHub makes it.
func anchor(heading string) string {
	plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
	return strings.ReplaceAll(plain, " ", "-")
}

// TestEveryLinkLeadsSomewhere checks each relative link of the pages, the decision records and the
// files at the root: the file exists and has the heading. `make lint` runs it.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	all := pages(t)
	for _, pattern := range []string{"../*.md", "../docs/decisions/*.md"} {
		files, err := filepath.Glob(pattern)
		testworld.Must(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			testworld.Must(t, err)
			all[strings.TrimPrefix(filepath.ToSlash(file), "../")] = string(text)
		}
	}
	leads := func(from, to string) {
		file, fragment, _ := strings.Cut(to, "#")
		path := filepath.ToSlash(filepath.Join(filepath.Dir(from), file))
		if file == "" {
			path = from
		}
		if _, err := os.Stat(filepath.Join("..", path)); err != nil {
			t.Errorf("%s: there is no %s", from, to)
			return
		}
		page, ok := all[path]
		if fragment == "" || !ok {
			return
		}
		for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
			if anchor(h[1]) == fragment {
				return
			}
		}
		t.Errorf("%s: %s has no heading %s", from, path, fragment)
	}
	for name, page := range all {
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
			if !strings.Contains(link[1], "://") {
				leads(name, link[1])
			}
		}
	}
}

// TestTheFirstProcessorIsWatchedAsThePageSays runs the first part of docs/start.md and compares the
// output with the page.
func TestTheFirstProcessorIsWatchedAsThePageSays(t *testing.T) {
	t.Parallel()
	_, part, _ := strings.Cut(pages(t)["docs/start.md"], "## Against a stand-in")
	part, _, _ = strings.Cut(part, "\n## ")
	folder, account, answers := t.TempDir(), testworld.FreeAddress(t), testworld.FreeAddress(t)
	settings := map[string]string{"PATH": filepath.Dir(made(t, buildTool)) + ":" + os.Getenv("PATH"), "FEEDSCALE_LISTEN": answers}
	part = strings.ReplaceAll(part, "127.0.0.1:8081", account)
	ago := regexp.MustCompile(`\d+s ago`)
	var started []running
	output, ran := "", 0
	for _, block := range shells(part) {
		text := strings.TrimSpace(block.text)
		words := strings.Fields(text)
		switch {
		case block.output:
			for line := range strings.Lines(block.text) {
				if !strings.Contains(output, ago.ReplaceAllString(line, "Ns ago")) {
					t.Errorf("%q is not in %s", line, output)
				}
			}
			continue
		case words[1] == "emulate":
			started = append(started, start(t, folder, nil, append(words[1:], "--cosmos", account, "--servicebus", "127.0.0.1:0")...))
			started[0].stdout.await(t, "COSMOS=")
		case words[1] == "run":
			// the second poll is at its end, and the page shows the first
			const slot = 15 * time.Second
			now := time.Now()
			time.Sleep(now.Truncate(slot).Add(slot + time.Second).Sub(now))
			started = append(started, start(t, folder, settings, words[1:]...))
			started[1].stdout.await(t, `-000000000001"`)
		case words[0] == "export":
			name, value, _ := strings.Cut(words[1], "=")
			settings[name] = strings.Trim(value, `"`)
		default:
			c := exec.CommandContext(t.Context(), "sh", "-c", text)
			c.Dir, c.Env = folder, append(testworld.Environ(settings), "HOME="+folder)
			r := testworld.Run(t, c)
			if r.Status != 0 {
				t.Errorf("%s: %+v", text, r)
			}
			output = ago.ReplaceAllString(r.Stdout, "Ns ago")
		}
		ran++
	}
	if ran != 7 || len(started) != 2 {
		t.Errorf("%d blocks were run, and %d programs started", ran, len(started))
	}
	for _, r := range slices.Backward(started) {
		r.interrupt(t)
	}
	if files, _ := filepath.Glob(filepath.Join(folder, "*", "*")); len(files) != 1 {
		t.Errorf("these were written: %q", files)
	}
}

// TestEveryTestThatAPromiseNamesExists checks the tests that docs/security.md names for each limit.
func TestEveryTestThatAPromiseNamesExists(t *testing.T) {
	t.Parallel()
	tests := make(map[string]bool)
	testworld.Must(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[name[1]] = true
		}
		return err
	}))
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(pages(t)["docs/security.md"], -1)
	if len(named) == 0 {
		t.Fatal("no test is named")
	}
	for _, name := range named {
		if !tests[name[1]] {
			t.Errorf("there is no %s", name[1])
		}
	}
}

// TestNoTextOfAProgramNamesAPageThatOnlyTheSourcesHave reads every string in the sources: a user
// who has only the binary has no docs/.
func TestNoTextOfAProgramNamesAPageThatOnlyTheSourcesHave(t *testing.T) {
	t.Parallel()
	local := regexp.MustCompile(`(^|[^/])docs/[a-z]`)
	for _, root := range []string{".", "../pkg"} {
		testworld.Must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "pkg/benchmark/") || strings.Contains(path, "pkg/emulator/") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && local.MatchString(text.Value) {
					t.Errorf("%s: %s", set.Position(text.Pos()), text.Value)
				}
				return true
			})
			return nil
		}))
	}
}

// TestWhatContributingNamesExists checks the examples of CONTRIBUTING.md: each file or folder in
// backquotes exists, and each name in parentheses after a file is in that file.
func TestWhatContributingNamesExists(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../CONTRIBUTING.md")
	testworld.Must(t, err)
	_, page, found := strings.Cut(string(text), "## The house")
	named := regexp.MustCompile("`((?:functions|pkg)/[\\w/.]+)`(?:\\s+\\(((?:`\\w+`(?:, )?)+)\\))?").FindAllStringSubmatch(page, -1)
	if !found || len(named) < 40 {
		t.Fatalf("only %d files are named", len(named))
	}
	for _, n := range named {
		if n[2] == "" {
			if _, err := os.Stat(filepath.Join("..", n[1])); err != nil {
				t.Error(err)
			}
			continue
		}
		file, err := os.ReadFile(filepath.Join("..", n[1]))
		testworld.Must(t, err)
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(n[2], -1) {
			if !regexp.MustCompile(`\b` + name + `\b`).Match(file) {
				t.Errorf("%s has no %s", n[1], name)
			}
		}
	}
}
