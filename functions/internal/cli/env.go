package cli

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// Env is the process around a command. Commands take everything from it and nothing from globals, so
// that a test can run one in process.
type Env struct {
	Args    []string // without the program's own name
	Environ []string // NAME=VALUE, as os.Environ has it
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	Version string // of this build

	Parent func() int // process id of who started this process; nil = nobody cares

	// Terminal is the size, in characters, of the terminal that Stdout is; ok is false where it is none, and so is nil.
	Terminal func() (width, height int, ok bool)
	// ErrTerminal is the same of Stderr; nil = it is none.
	ErrTerminal func() (width, height int, ok bool)
	// Keys has each key that is pressed read at once and not shown, until restore is called; nil or not
	// ok = nobody presses any, since standard input is no terminal.
	Keys func() (keys io.Reader, restore func(), ok bool)
}

// OS is the Env of this process. release is the version that the linker set; "" = the module's.
func OS(release string) Env {
	return Env{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now, Version: version(release), Parent: os.Getppid,
		Terminal:    func() (width, height int, ok bool) { return terminal(os.Stdout) },
		ErrTerminal: func() (width, height int, ok bool) { return terminal(os.Stderr) },
		Keys: func() (keys io.Reader, restore func(), ok bool) {
			fd := int(os.Stdin.Fd())
			before, err := term.MakeRaw(fd) // fails where it is no terminal
			if err != nil {
				return nil, nil, false
			}
			return os.Stdin, func() { _ = term.Restore(fd, before) }, true
		},
	}
}

func terminal(f *os.File) (width, height int, ok bool) {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) {
		return 0, 0, false
	}
	width, height, _ = term.GetSize(fd) // 0 where the terminal does not say
	return width, height, true
}

func version(release string) string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Getenv returns a variable of the environment, "" where it is not set.
func (e Env) Getenv(name string) string {
	for _, entry := range e.Environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// Style is how to print for whoever reads Stdout: in colors to a terminal only, and not where
// NO_COLOR is set; as wide as the terminal, or as COLUMNS says where there is none.
func (e Env) Style() console.Style {
	width, _, ok := e.size()
	if width == 0 {
		width, _ = strconv.Atoi(e.Getenv("COLUMNS")) // what is no number is no width
	}
	return console.Style{Width: max(0, width), Colors: ok && e.Getenv("NO_COLOR") == ""}
}

func (e Env) size() (width, height int, ok bool) {
	if e.Terminal == nil {
		return 0, 0, false
	}
	return e.Terminal()
}

func (e Env) errTerminal() (width int, ok bool) {
	if e.ErrTerminal == nil {
		return 0, false
	}
	width, _, ok = e.ErrTerminal()
	return width, ok
}

// draw steers the terminal that Stderr is, past what keeps the texts of others from it.
func (e Env) draw(text string) {
	w := e.Stderr
	if lines, ok := w.(console.Lines); ok {
		w = lines.Writer
	}
	io.WriteString(w, text) // there is nobody to tell where this fails
}

// asking tells a person that another process is asked, which has the state file open.
func (e Env) asking(address string) {
	width, _ := e.errTerminal()
	fmt.Fprintln(e.Stderr, console.Wrap("feedscale: another process has the state file open, and is asked at "+address, "  ", width))
}
