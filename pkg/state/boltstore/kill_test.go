package boltstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// pathVariable makes the test binary a process that commits to that file, one event after the
// other, until it is killed.
const pathVariable = "BOLTSTORE_TEST_COMMIT_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(pathVariable); path != "" {
		fmt.Println(commitForEver(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// commitForEver prints the number of each commit after it.
func commitForEver(path string) error {
	ctx := context.Background()
	store, err := boltstore.Open(path)
	if err != nil {
		return err
	}
	for {
		stored, err := storetest.Load(ctx, store, "orders")
		if err != nil {
			return err
		}
		next := state.State{Processor: "orders", Sequence: stored.State.Sequence + 1}
		event := state.Event{Processor: "orders", Sequence: next.Sequence, Body: fmt.Append(nil, next.Sequence)}
		if err := store.Commit(ctx, stored.Version, next, &event); err != nil {
			return err
		}
		fmt.Println(next.Sequence)
	}
}

func TestWhatWasCommittedOutlivesAKilledProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "feedscale.db")
	for round := range 5 {
		told := commitAndKill(t, path, 20+7*round)

		store := open(t, path) // the lock of the killed process is gone
		record, err := storetest.Load(t.Context(), store, "orders")
		if err != nil {
			t.Fatal(err)
		}
		// One more may have been committed than was printed.
		stored := record.State.Sequence
		if stored < told {
			t.Errorf("the state is that of commit %d, though %d was committed", stored, told)
		}
		if int64(len(record.Outbox)) != stored {
			t.Errorf("%d events beside the state of commit %d", len(record.Outbox), stored)
		}
		for i, event := range record.Outbox {
			if want := int64(i + 1); event.Sequence != want || string(event.Body) != fmt.Sprint(want) {
				t.Errorf("event %d: got %d with %q", want, event.Sequence, event.Body)
			}
		}
		closeStore(t, store)
	}
}

// commitAndKill lets another process commit a number of times, kills it during the next commit, and
// returns the number that it printed last.
func commitAndKill(t *testing.T, path string, commits int) int64 {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), pathVariable+"="+path)
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	var told int64
	for line := 0; ; line++ {
		if line == commits {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		text, err := lines.ReadString('\n')
		if err != nil {
			break // all that was told before it was killed has been read
		}
		if told, err = strconv.ParseInt(strings.TrimSpace(text), 10, 64); err != nil {
			t.Fatalf("the committing process says %q", text)
		}
	}
	_ = child.Wait() // killed
	if told < int64(commits) {
		t.Fatalf("only %d commits, want at least %d", told, commits)
	}
	return told
}
