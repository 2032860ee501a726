package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/term"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// pty is a terminal under the control of a test: its screen and its keys.
type pty struct {
	master, slave *os.File

	mu      sync.Mutex
	written bytes.Buffer
}

// openPTY opens one, see pts(4).
func openPTY(t *testing.T, width, height int) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	testworld.Must(t, err)
	unlocked, number := 0, 0
	control(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	control(t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	testworld.Must(t, err)
	p := &pty{master: master, slave: slave}
	p.resize(t, width, height)
	go func() {
		chunk := make([]byte, 1<<16)
		for {
			n, err := master.Read(chunk)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.written.Write(chunk[:n])
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		slave.Close()
		master.Close()
	})
	return p
}

func control(t *testing.T, f *os.File, request uintptr, argument unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(argument)); errno != 0 {
		t.Fatal(errno)
	}
}

func (p *pty) resize(t *testing.T, width, height int) {
	t.Helper()
	size := [4]uint16{uint16(height), uint16(width)}
	control(t, p.master, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

// paint matches the codes of colors, which take no room.
var paint = regexp.MustCompile(`\x1b\[[0-9;]*[mK]`)

// up matches the code that moves the cursor up, before a picture is drawn over the last one.
var up = regexp.MustCompile(`\r\x1b\[\d+A`)

// picture returns the last complete picture.
func (p *pty) picture() []string {
	pictures := up.Split(p.text(), -1)
	if len(pictures) < 3 {
		return nil
	}
	// the first line ends the text above the picture
	lines := strings.Split(pictures[len(pictures)-2], "\x1b[2K")[1:]
	for i, line := range lines {
		lines[i] = strings.TrimRight(paint.ReplaceAllString(strings.ReplaceAll(line, "\x1b[J", ""), ""), "\r\n")
	}
	return lines
}

// demoIn starts the demo in a new terminal.
func demoIn(t *testing.T, p *pty) *exec.Cmd {
	t.Helper()
	folder := t.TempDir()
	c := prepare(t, folder, map[string]string{"FEEDSCALE_LISTEN": "127.0.0.1:0", "TERM": "xterm", "TMPDIR": folder}, "demo")
	c.Stdin, c.Stdout, c.Stderr = p.slave, p.slave, p.slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testworld.Must(t, c.Start())
	testworld.Eventually(t, "the demo shows its processors", func() bool { return strings.Contains(strings.Join(p.picture(), "\n"), "audit") })
	return c
}

func TestTheDemoFitsARealTerminalAndFollowsItsSize(t *testing.T) {
	made(t, buildTool)
	t.Parallel()
	p := openPTY(t, 60, 14)
	c := demoIn(t, p)
	for _, size := range []struct{ width, height int }{{60, 14}, {80, 24}, {120, 40}, {60, 14}} {
		p.resize(t, size.width, size.height)
		var before int
		testworld.Eventually(t, "the demo draws anew", func() bool {
			drawn := len(up.FindAllString(p.text(), -1))
			if before == 0 {
				before = drawn
			}
			return drawn > before+2
		})
		lines := p.picture()
		if len(lines) >= size.height {
			t.Errorf("%dx%d: %d lines", size.width, size.height, len(lines))
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) >= size.width {
				t.Errorf("%dx%d: %q is too wide", size.width, size.height, line)
			}
		}
	}
	_, err := p.master.WriteString("2")
	testworld.Must(t, err)
	testworld.Eventually(t, "a key is taken", func() bool { return strings.Contains(strings.Join(p.picture(), "\n"), "2 hang*") })
	_, err = p.master.WriteString("q")
	testworld.Must(t, err)
	testworld.Must(t, c.Wait())
}

func TestTheDemoGivesTheTerminalBackHoweverItEnds(t *testing.T) {
	made(t, buildTool)
	t.Parallel()
	for _, c := range []struct {
		rule string
		end  func(*pty, *exec.Cmd) error
	}{
		{"at Ctrl-C", func(p *pty, _ *exec.Cmd) error { _, err := p.master.Write([]byte{3}); return err }},
		{"interrupted", func(_ *pty, c *exec.Cmd) error { return c.Process.Signal(syscall.SIGINT) }},
		{"terminated", func(_ *pty, c *exec.Cmd) error { return c.Process.Signal(syscall.SIGTERM) }},
		{"hung up", func(_ *pty, c *exec.Cmd) error { return c.Process.Signal(syscall.SIGHUP) }},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			p := openPTY(t, 80, 24)
			before, err := term.GetState(int(p.slave.Fd()))
			testworld.Must(t, err)
			process := demoIn(t, p)
			if during, err := term.GetState(int(p.slave.Fd())); err != nil || reflect.DeepEqual(before, during) {
				t.Errorf("the demo does not read keys as they are pressed: %v", err)
			}
			testworld.Must(t, c.end(p, process))
			if err := process.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			if left, err := os.ReadDir(process.Dir); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v behind, %v", left, err)
			}
			if after, err := term.GetState(int(p.slave.Fd())); err != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("the terminal is %+v, %v, and was %+v", after, err, before)
			}
			testworld.Eventually(t, "it says so", func() bool { return strings.Contains(p.text(), "feedscale: stopped") })
		})
	}
}

// differs matches what differs from one run to the next: times, durations, ports, and the epoch.
var differs = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|127\.0\.0\.1:\d+|\b\d{10}\b|"[\d.]+(µs|ms|s)"`)

// TestRunPlainOnATerminalPrintsWhatAPipeGets compares each line to the byte, but for what differs.
func TestRunPlainOnATerminalPrintsWhatAPipeGets(t *testing.T) {
	made(t, buildTool)
	t.Parallel()
	_, settings := runs(t)
	settings["FEEDSCALE_TIMER_SCHEDULE"] = "0 0 0 1 1 *" // no second tick
	piped, err := os.CreateTemp(t.TempDir(), "piped")
	testworld.Must(t, err)
	p := openPTY(t, 80, 24)
	printed := func(to *os.File, read func() string, args ...string) []string {
		t.Helper()
		c := prepare(t, t.TempDir(), settings, append([]string{"run"}, args...)...)
		c.Stdout, c.Stderr = to, to
		testworld.Must(t, c.Start())
		testworld.Eventually(t, "a tick", func() bool { return strings.Contains(read(), `"msg":"tick"`) })
		testworld.Must(t, c.Process.Signal(os.Interrupt))
		testworld.Must(t, c.Wait())
		var text string
		testworld.Eventually(t, "the last line", func() bool { text = read(); return strings.HasSuffix(text, "\n") })
		lines := strings.Split(differs.ReplaceAllString(text, "~"), "\n")
		slices.Sort(lines) // an event and a line of the log may overtake each other
		return lines
	}
	file := func() string {
		text, err := os.ReadFile(piped.Name())
		testworld.Must(t, err)
		return string(text)
	}
	want := printed(piped, file)
	got := printed(p.slave, func() string { return strings.ReplaceAll(p.text(), "\r\n", "\n") }, "--plain")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("on a terminal\n%s\nto a pipe\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
