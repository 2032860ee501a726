//go:build !linux

package functionshost

import (
	"os"
	"os/exec"
)

// startWithParent starts a command as a child of the test: on this system a handler that is left
// behind keeps its parent.
func startWithParent(command *exec.Cmd) (*os.Process, error) {
	if err := command.Start(); err != nil {
		return nil, err
	}
	return command.Process, nil
}

// endParent is not possible here.
func endParent(*process) {}

// exitCode cannot distinguish an exit code from a signal here.
func exitCode(state *os.ProcessState) int { return state.ExitCode() }
