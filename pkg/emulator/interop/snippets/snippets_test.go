//go:build snippets

package snippets

import (
	"bufio"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// What run-snippets.sh installs: node_modules beside a package.json, a Python, and a file with a
// class path.
var (
	nodeFolder = flag.String("node", "", "folder with node_modules")
	python     = flag.String("python", "", "program of a virtual environment")
	classPath  = flag.String("classpath", "", "file with a class path")
)

const root = "../../../.."

// program writes a program into a folder, and returns its file: that of the folder programs, or the
// block of the page that begins with its name.
func program(t *testing.T, name, folder string) string {
	t.Helper()
	file := filepath.Join(folder, name)
	if text, err := os.ReadFile(filepath.Join("programs", name)); err == nil {
		testworld.Must(t, os.WriteFile(file, text, 0o600))
		return file
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "stand-ins.md"))
	testworld.Must(t, err)
	block := regexp.MustCompile("(?ms)^```\\w+\n(?://|#) " + regexp.QuoteMeta(name) + "\n(.*?)^```$").FindSubmatch(page)
	if block == nil {
		t.Fatalf("docs/stand-ins.md has no %s", name)
	}
	testworld.Must(t, os.WriteFile(file, block[1], 0o600))
	return file
}

// emulate starts the tool with what the page names, and returns the environment that it prints.
func emulate(t *testing.T, tool string, args ...string) []string {
	t.Helper()
	command := exec.Command(tool, append([]string{
		"emulate", "--cosmos", "127.0.0.1:0", "--container", "shop/orders:4:/customerId", "--container", "shop/leases", "--queue", "scale-events",
	}, args...)...)
	command.Dir, command.Stderr = t.TempDir(), os.Stderr
	printed, err := command.StdoutPipe()
	testworld.Must(t, err)
	testworld.Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	last := "SERVICEBUS"
	for _, a := range args {
		if a == "--tls" {
			last = "SSL_CERT_FILE"
		}
	}
	environ := os.Environ()
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		environ = append(environ, name+"="+strings.Trim(value, `"`))
		if name == last {
			return environ
		}
	}
	t.Fatal("it does not start: is port 5671 free?")
	return nil
}

func TestTheProgramsOfThePageRunAsTheyStand(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "feedscale")
	if output, err := exec.Command("go", "build", "-tags", "demo", "-o", tool, root+"/functions/cmd/feedscale").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	class, err := os.ReadFile(*classPath)
	testworld.Must(t, err)
	inside := func(parent string) string {
		folder, err := os.MkdirTemp(parent, "snippet-")
		testworld.Must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(folder) })
		folder, err = filepath.Abs(folder)
		testworld.Must(t, err)
		return folder
	}
	testworld.Must(t, os.MkdirAll(filepath.Join(root, "bin"), 0o755))
	java := func(environ []string, file string) *exec.Cmd {
		// As the page says.
		store := filepath.Join(t.TempDir(), "trust.p12")
		var trusted string
		for _, e := range environ {
			if value, ok := strings.CutPrefix(e, "SSL_CERT_FILE="); ok {
				trusted = value
			}
		}
		if output, err := exec.Command("keytool", "-importcert", "-noprompt", "-alias", "feedscale", "-file", trusted, "-keystore", store,
			"-storetype", "PKCS12", "-storepass", "changeit").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return exec.Command("java", "-Djavax.net.ssl.trustStore="+store, "-Djavax.net.ssl.trustStorePassword=changeit", "-cp", strings.TrimSpace(string(class)), file)
	}
	for _, c := range []struct {
		name   string
		args   []string // of emulate
		folder string
		run    func(environ []string, file string) *exec.Cmd
		says   []string
	}{
		{"orders_test.go", nil, inside(root + "/bin"), func(_ []string, file string) *exec.Cmd { return exec.Command("go", "test", "-v", filepath.Dir(file)) }, []string{`changed {"id":"1"`}},
		{"keys.mjs", nil, inside(*nodeFolder), func(_ []string, file string) *exec.Cmd { return exec.Command("node", file) }, []string{"changed 1", "received hello"}},
		{"keys.py", nil, t.TempDir(), func(_ []string, file string) *exec.Cmd { return exec.Command(*python, file) }, []string{"changed 1", "received hello"}},
		{"Keys.java", []string{"--tls"}, t.TempDir(), java, []string{"changed 1", "received hello"}},
		{"identity.go", []string{"--tls", "--any-token"}, inside(root + "/bin"), func(_ []string, file string) *exec.Cmd { return exec.Command("go", "run", file) }, []string{"signed in"}},
		{"identity.mjs", []string{"--tls", "--any-token"}, inside(*nodeFolder), func(environ []string, file string) *exec.Cmd {
			command := exec.Command("sh", "-c", `NODE_EXTRA_CA_CERTS=$SSL_CERT_FILE exec node "$0"`, file)
			return command
		}, []string{"signed in"}},
		{"identity.py", []string{"--tls", "--any-token"}, t.TempDir(), func(_ []string, file string) *exec.Cmd { return exec.Command(*python, file) }, []string{"signed in"}},
		{"Identity.java", []string{"--tls", "--any-token"}, t.TempDir(), java, []string{"signed in"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := program(t, c.name, c.folder)
			args := c.args
			if args == nil {
				args = []string{"--servicebus", "127.0.0.1:0"}
			}
			environ := emulate(t, tool, args...)
			command := c.run(environ, file)
			command.Dir, command.Env = c.folder, environ
			output, err := command.CombinedOutput()
			for _, says := range c.says {
				if err != nil || !strings.Contains(string(output), says) {
					t.Errorf("%v, want %q in\n%s", err, says, output)
				}
			}
		})
	}
}
