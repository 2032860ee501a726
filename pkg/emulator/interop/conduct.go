// Package interop runs client programs in other languages against the stand-ins. The programs are
// ordinary users of their official SDKs; the one thing an SDK cannot do, splitting and merging
// partition key ranges, they ask for by a line on their standard output and read the answer on
// their standard input.
//
// Start reading at Conduct. The program in cosmos/ is the one that scripts call.
//
// The package is internal to the program: its API may change in any release.
package interop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// Conduct runs a program that uses the account until it ends. The program finds COSMOS_ENDPOINT and
// COSMOS_KEY in its environment. Lines it prints are copied to log, except these requests, each of
// which is answered with one line:
//
//	split DATABASE CONTAINER RANGE    the ids of the children
//	merge DATABASE CONTAINER A B      the id of the child
//
// and those of more, by their first word. An answer that begins with "error" tells why a request
// failed.
func Conduct(ctx context.Context, account *cosmosfake.Server, more map[string]Request, log io.Writer, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(append(os.Environ(), "COSMOS_ENDPOINT="+account.Endpoint(), "COSMOS_KEY="+cosmosfake.WellKnownKey), env...)
	cmd.Stderr = log
	cmd.WaitDelay = 5 * time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("running %s: %w", name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running %s: %w", name, err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		answer, asked := obey(account, more, strings.Fields(lines.Text()))
		if !asked {
			_, _ = fmt.Fprintln(log, lines.Text())
			continue
		}
		if _, err := fmt.Fprintln(in, answer); err != nil {
			break // the program has ended; Wait tells how
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("running %s: %w", name, err)
	}
	return nil
}

// Request is what a program may ask for besides: the words behind the first one in, the answer out.
type Request func(words []string) (answer string, err error)

func obey(account *cosmosfake.Server, more map[string]Request, words []string) (answer string, asked bool) {
	var err error
	switch {
	case len(words) > 0 && more[words[0]] != nil:
		answer, err = more[words[0]](words[1:])
	case len(words) == 4 && words[0] == "split":
		var children []string
		children, err = account.Split(words[1], words[2], words[3])
		answer = strings.Join(children, " ")
	case len(words) == 5 && words[0] == "merge":
		answer, err = account.Merge(words[1], words[2], words[3], words[4])
	default:
		return "", false
	}
	if err != nil {
		return "error " + err.Error(), true
	}
	return answer, true
}
