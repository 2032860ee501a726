// Command benchmark measures the cost of a tick, in ratio to a bare net/http loop that makes the
// same feed requests to the same stand-in. `make bench` runs it as `benchmark [NAME] HANDLER`,
// where HANDLER is the stripped executable in the folder of the command line. It prints each measured
// value with its goal. It never fails, since machines differ; ratios differ less.
//
// The stand-in is this program in another process, so that its CPU time is not counted. Start with
// measure, which lists the measurements.
//
// The command is internal to the project: its output may change in any release.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/estimator"
)

const concurrency = 64 // the default of FEEDSCALE_CONCURRENCY

func main() {
	var err error
	switch {
	case len(os.Args) == 7 && os.Args[1] == "standin":
		err = serveStandIn(os.Args[2:])
	case len(os.Args) == 2:
		err = measure("", os.Args[1])
	case len(os.Args) == 3:
		err = measure(os.Args[1], os.Args[2])
	default:
		err = fmt.Errorf("usage: benchmark [NAME] HANDLER")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

// measure prints one measurement, or all if name is "", each with its goal.
func measure(name, handler string) error {
	handler, err := filepath.Abs(handler)
	if err != nil {
		return err
	}
	fmt.Printf("%-58s %14s   %s\n", "measurement", "got", "wanted")
	for _, m := range []struct {
		name    string
		measure func(handler string) error
	}{
		{"cpu", cpuPerPartition}, {"wall", wallOfSlowAnswers}, {"requests", requestsPerTick}, {"memory", memory}, {"large", memoryOfLargeItems},
		{"start", firstRequest}, {"emulator", emulatorReady}, {"size", size}, {"processor", processorThroughput}, {"page", page}, {"scale", scale},
	} {
		if name == "" || name == m.name {
			if err := m.measure(handler); err != nil {
				return err
			}
		}
	}
	return nil
}

func row(what, got, wanted string) { fmt.Printf("%-58s %14s   %s\n", what, got, wanted) }

// standIn is a stand-in account in another process. All its containers have the same number of
// partitions. For each partition, the container leases has a lease of every processor.
type standIn struct {
	command    *exec.Cmd
	stdin      io.Closer
	connection string
	endpoint   string
	key        string
	containers int
	partitions int
	processors int // on each container
}

// startStandIn starts a stand-in that delays answers of the change feed by delay. The oldest
// pending change of each partition has so many bytes; 0 = a few small changes.
func startStandIn(containers, partitions, processors int, delay time.Duration, bytes int) (*standIn, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &standIn{containers: containers, partitions: partitions, processors: processors}
	s.command = exec.Command(self, "standin", strconv.Itoa(containers), strconv.Itoa(partitions), strconv.Itoa(processors), delay.String(), strconv.Itoa(bytes))
	s.command.Stderr = os.Stderr
	if s.stdin, err = s.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the stand-in did not start: %w", err)
	}
	s.connection = strings.TrimSpace(line)
	for field := range strings.SplitSeq(s.connection, ";") {
		if v, ok := strings.CutPrefix(field, "AccountEndpoint="); ok {
			s.endpoint = v
		}
		if v, ok := strings.CutPrefix(field, "AccountKey="); ok {
			s.key = v
		}
	}
	return s, nil
}

// stop ends the stand-in by closing its standard input.
func (s *standIn) stop() {
	s.stdin.Close()
	_ = s.command.Wait()
}

func (s *standIn) leases() int { return s.containers * s.partitions * s.processors }

// list returns the processors for the estimator.
func (s *standIn) list() ([]estimator.Processor, error) {
	account, err := cosmos.NewAccount(cosmos.Options{Endpoint: s.endpoint, Setting: "COSMOS", Key: s.key, Concurrency: concurrency})
	if err != nil {
		return nil, err
	}
	var processors []estimator.Processor
	for c := range s.containers {
		for n := range s.processors {
			processors = append(processors, estimator.Processor{
				Name:    processorName(n),
				Account: account, Container: cosmos.Container{Database: database, ID: containerID(c)},
				LeaseAccount: account, LeaseContainer: cosmos.Container{Database: database, ID: leaseContainer},
				ProcessorName: processorName(n), AccountHost: leaseHost,
			})
		}
	}
	return processors, nil
}

// entry is an entry of the processors file.
type entry map[string]any

// document returns the processors file for the handler: one processor for each container of the
// accounts. settingOf names the setting of each account.
func document(accounts ...*standIn) string {
	var list []entry
	for n, s := range accounts {
		for i := range s.containers {
			list = append(list, entry{"name": fmt.Sprintf("%d-%s", n, containerID(i)), "connection": settingOf(n), "containerId": containerID(i), "processorName": processorName(0)})
		}
	}
	text, _ := json.Marshal(entry{
		"defaults":   entry{"databaseId": database, "leaseContainerId": leaseContainer, "accountHost": leaseHost},
		"processors": list,
	})
	return string(text)
}

// settingOf is the name of the setting of the nth account.
func settingOf(n int) string { return fmt.Sprint("COSMOS", n) }

// estimate measures all processors once. It fails if one is incomplete.
func (s *standIn) estimate(e *estimator.Estimator, processors []estimator.Processor) error {
	for _, l := range e.EstimateAll(context.Background(), processors) {
		if !l.Complete() {
			return fmt.Errorf("a processor is incomplete: %s", l.Problem())
		}
	}
	return nil
}
