package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker: the version of a released build.
var release = ""

func (p program) version(_ context.Context, args []string) int {
	if status, done := p.parse(p.flags("version", ""), args); done {
		return status
	}
	fmt.Fprintf(p.stdout, "feedscale %s %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitOK
}

func buildVersion() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
