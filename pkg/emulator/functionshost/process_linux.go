package functionshost

import (
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the handler where the test that started it
// is itself killed.
func dieWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// endingSignal is the signal that ended a process, if one did.
func endingSignal(state *os.ProcessState) (int, bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	return int(status.Signal()), ok && status.Signaled()
}
