package functionshost

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// parentName is how this program calls itself where it is the parent of a handler.
const parentName = "functionshost-parent"

// A handler that the host leaves behind loses its parent. The test must go on, so the parent is
// another process of the same program.
func init() {
	if len(os.Args) > 1 && os.Args[0] == parentName {
		os.Exit(runParent(os.Args[1], os.Args[2:]))
	}
}

// runParent starts the handler, reports the start on file 3, and ends with the handler's exit code.
// On SIGTERM, which the kernel also sends when the test is gone, it kills the handler first.
func runParent(executable string, arguments []string) int {
	report := os.NewFile(3, "report")
	syscall.CloseOnExec(3)
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	command := exec.Command(executable, arguments...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		fmt.Fprintln(report, err)
		return 1
	}
	go func() {
		<-ends
		_ = command.Process.Kill()
	}()
	fmt.Fprintln(report, command.Process.Pid)
	_ = report.Close()
	_ = command.Wait() // the exit code says it
	return handlerExitCode(command.ProcessState)
}

// handlerExitCode is the code as .NET has it: 128 and the signal where one ended the process.
func handlerExitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// startWithParent starts a command below a parent of its own, which takes the command's place, and
// returns the command's process.
func startWithParent(command *exec.Cmd) (*os.Process, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	command.Args = append([]string{parentName, command.Path}, command.Args[1:]...)
	command.Path = "/proc/self/exe"
	command.ExtraFiles = []*os.File{writer}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	err = command.Start()
	_ = writer.Close()
	if err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(reader).ReadString('\n')
	line = strings.TrimSpace(line)
	pid, err := strconv.Atoi(line)
	if err != nil {
		_ = command.Wait()
		return nil, errors.New(line)
	}
	return os.FindProcess(pid)
}

// endParent leaves the handler without its parent.
func endParent(p *process) { _ = p.parent.Process.Kill() }

// exitCode is that of the handler, which its parent passes on.
func exitCode(parent *os.ProcessState) int { return parent.ExitCode() }
