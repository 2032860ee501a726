package program

import (
	"cmp"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/config"
)

// Env is the process around a command. Commands read nothing from globals, so that a test can run
// them.
type Env struct {
	Args    []string // without the program's own name
	Environ []string // NAME=VALUE, as os.Environ has it
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	Version string // of this build

	Parent func() int // process id of the parent; nil = not watched

	// Terminal returns the size of Stdout's terminal in characters, 0 = unknown. ok is false if
	// Stdout is none; nil means the same.
	Terminal func() (width, height int, ok bool)
	// ErrTerminal is Terminal for Stderr.
	ErrTerminal func() (width, height int, ok bool)
	// Keys delivers each key at once and without an echo, until restore is called. ok is false if
	// Stdin is no terminal; nil means the same.
	Keys func() (keys io.Reader, restore func(), ok bool)
}

// OS is the Env of this process. release is the version that the linker set; "" = that of the
// module.
func OS(release string) Env {
	return Env{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, Version: version(release), Parent: os.Getppid,
		Terminal: terminal(os.Stdout), ErrTerminal: terminal(os.Stderr),
		Keys: func() (keys io.Reader, restore func(), ok bool) {
			fd := int(os.Stdin.Fd())
			before, err := term.MakeRaw(fd) // fails without a terminal
			if err != nil {
				return nil, nil, false
			}
			return os.Stdin, func() { _ = term.Restore(fd, before) }, true
		},
	}
}

func terminal(f *os.File) func() (width, height int, ok bool) {
	return func() (width, height int, ok bool) {
		fd := int(f.Fd())
		width, height, _ = term.GetSize(fd) // 0 if the terminal does not say
		return width, height, term.IsTerminal(fd)
	}
}

func version(release string) string {
	info, _ := debug.ReadBuildInfo() // which every build with modules has
	return cmp.Or(release, info.Main.Version, "(devel)")
}

// Getenv returns a variable of the environment, "" if it is not set.
func (e Env) Getenv(name string) string {
	value, _ := config.Lookup(e.Environ)(name)
	return value
}

// Style is the width and the colors for Stdout. Colors need a terminal and no NO_COLOR. Without a
// terminal, COLUMNS is the width.
func (e Env) Style() console.Style {
	width, _, ok := size(e.Terminal)
	if width == 0 {
		width, _ = strconv.Atoi(e.Getenv("COLUMNS")) // 0 if it is no number
	}
	return console.Style{Width: max(0, width), Colors: ok && e.Getenv("NO_COLOR") == ""}
}

func size(terminal func() (width, height int, ok bool)) (width, height int, ok bool) {
	if terminal == nil {
		return 0, 0, false
	}
	return terminal()
}

// Person reports whether a person reads Stderr: it is a terminal.
func (e Env) Person() bool {
	_, _, ok := size(e.ErrTerminal)
	return ok
}

// draw writes control characters to Stderr, which console.Lines would escape.
func (e Env) draw(text string) {
	w := e.Stderr
	if lines, ok := w.(console.Lines); ok {
		w = lines.Writer
	}
	_, _ = io.WriteString(w, text) // nobody could be told of an error
}
