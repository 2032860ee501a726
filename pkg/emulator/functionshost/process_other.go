//go:build !linux

package functionshost

import (
	"os"
	"os/exec"
)

// dieWithParent is not possible here.
func dieWithParent(*exec.Cmd) {}

// endingSignal is not told apart from a failure here.
func endingSignal(*os.ProcessState) (int, bool) { return 0, false }
