package cli

import (
	"io"
	"os"
	"runtime/debug"
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
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	Version string // of this build

	Parent func() int // process id of who started this process; nil = nobody cares

	// Terminal is the size, in characters, of the terminal that Stdout is; ok is false where it is none.
	Terminal func() (width, height int, ok bool)

	// Keys has each key that is pressed read at once and not shown, until restore is called; nil or not
	// ok = nobody presses any, since standard input is no terminal.
	Keys func() (keys io.Reader, restore func(), ok bool)
}

// OS is the Env of this process. release is the version that the linker set; "" = the module's.
func OS(release string) Env {
	return Env{
		Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now, Version: version(release), Parent: os.Getppid,
		Terminal: func() (width, height int, ok bool) {
			fd := int(os.Stdout.Fd())
			if !term.IsTerminal(fd) {
				return 0, 0, false
			}
			width, height, _ = term.GetSize(fd) // 0 where the terminal does not say
			return width, height, true
		},
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
// NO_COLOR is set.
func (e Env) Style() console.Style {
	width, _, ok := e.Terminal()
	return console.Style{Width: width, Colors: ok && e.Getenv("NO_COLOR") == ""}
}
