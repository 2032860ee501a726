package servicebus_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// keepVariable makes the test binary a process that keeps so many signals in the queue scale, once;
// busVariable is its connection string.
const keepVariable, busVariable = "SERVICEBUS_TEST_KEEP", "SERVICEBUS_TEST_BUS"

func TestMain(m *testing.M) {
	if replicas := os.Getenv(keepVariable); replicas != "" {
		if err := keepOnce(replicas); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func keepOnce(replicas string) error {
	n, err := strconv.Atoi(replicas)
	if err != nil {
		return err
	}
	p, err := servicebus.NewPublisher(os.Getenv(busVariable), "scale", servicebus.PublisherOptions{})
	if err != nil {
		return err
	}
	return servicebus.NewSignals(p, servicebus.SignalsOptions{}).Keep(context.Background(), "scale", n)
}

// keeper is a process that keeps so many signals.
func keeper(t *testing.T, b *servicebusfake.Server, replicas int) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), keepVariable+"="+strconv.Itoa(replicas), busVariable+"="+b.ConnectionString())
	return c
}

// TestAProcessThatIsKilledAtAnyStepLeavesACountThatTheNextMakesRight kills a process at each operation that
// the broker sees of it, before the operation is done and behind it.
func TestAProcessThatIsKilledAtAnyStepLeavesACountThatTheNextMakesRight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule          string
		before, after int
	}{
		{"topping up", 2, 7},
		{"taking back", 6, 2},
		{"to none", 3, 0},
	} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the operation done %v", c.rule, done), func(t *testing.T) {
				t.Parallel()
				least, steps := min(c.before, c.after), 0
				for ended := false; !ended; steps++ {
					b := startBroker(t, "", servicebusfake.QueueSpec{})
					survivor := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
					keep(t, survivor, c.before)
					process := keeper(t, b, c.after)
					ended = !testworld.KillAt(t, b, process, steps, done)
					if got := active(b); got < least || got > max(c.before, c.after) {
						t.Errorf("killed at step %d: %d messages, between %d and %d", steps, got, c.before, c.after)
					}
					// The broker may be at the operation still, and the next but one finds what it did.
					testworld.Eventually(t, "the right count", func() bool {
						keep(t, survivor, c.after)
						return active(b) == c.after
					})
				}
				if steps < 10 {
					t.Errorf("only %d steps", steps)
				}
			})
		}
	}
}
