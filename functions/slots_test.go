package main_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// clockSetting names a clock file. With it in its environment, this test binary is the handler and
// reads the time from that file.
const clockSetting = "FUNCTIONS_TEST_CLOCK"

// clockFile is a time that the test sets and the handler reads.
type clockFile struct{ *os.File }

func newClockFile(t *testing.T) clockFile {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "clock"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, file.Close()) })
	return clockFile{file}
}

func (f clockFile) set(t *testing.T, now time.Time) {
	t.Helper()
	_, err := f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano())), 0)
	testworld.Must(t, err)
}

// Now is the time in the file.
func (f clockFile) Now() time.Time {
	var nanoseconds [8]byte
	if _, err := f.ReadAt(nanoseconds[:], 0); err != nil {
		panic(err) // in the handler, whose test it fails
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(nanoseconds[:])))
}

// beHandler is main with another clock.
func beHandler(clock string) int {
	file, err := os.Open(clock)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer file.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := program.OS("v1.2.3")
	env.Now = clockFile{file}.Now
	return program.Main(ctx, env, []program.Command{cli.Serve}, "")
}

// stageClocked stages the app with this test binary as its handler.
func stageClocked(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	testworld.Must(t, os.CopyFS(folder, os.DirFS(made(t, stage))))
	handler := filepath.Join(folder, "handler")
	testworld.Must(t, os.Remove(handler))
	executable, err := os.Executable()
	testworld.Must(t, err)
	testworld.Must(t, os.Symlink(executable, handler))
	return folder
}

// slotted is an app of processors with schedules. The test sets the time of its hosts and handlers,
// which begins at noon.
type slotted struct {
	*testworld.World
	options functionshost.Options
	file    clockFile
}

func newSlotted(t *testing.T, timer string, schedules ...string) *slotted {
	t.Helper()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	file := newClockFile(t)
	file.set(t, noon)
	w := testworld.New(t, testworld.Options{Account: cosmosfake.Options{Now: file.Now}})
	var document strings.Builder
	document.WriteString("{processors: [")
	for i, schedule := range schedules {
		id := fmt.Sprintf("orders%d", i)
		w.Container(id, 1)
		fmt.Fprintf(&document, "{name: %s, connection: COSMOS, databaseId: %s, containerId: %s, accountHost: %s, changeFeedLagThreshold: 10, schedule: '%s'},",
			id, testworld.Database, id, testworld.OrdersHost, schedule)
	}
	return &slotted{w, functionshost.Options{
		Root: stageClocked(t), Clock: functionshost.NewClock(noon), Storage: &functionshost.Storage{},
		Settings: map[string]string{
			"COSMOS": w.Account.ConnectionString(), "AzureWebJobsStorage": "UseDevelopmentStorage=true", clockSetting: file.Name(),
			"FEEDSCALE_TIMER_SCHEDULE": timer, "FEEDSCALE_STATE": "bolt:" + filepath.Join(t.TempDir(), "feedscale.db"), "FEEDSCALE_LOG_LEVEL": "error",
			"FEEDSCALE_PROCESSORS": document.String() + "]}",
		},
	}, file}
}

// start starts a host of the app.
func (s *slotted) start(t *testing.T) *slottedHost {
	t.Helper()
	return &slottedHost{Host: startHost(t, s.options), clock: s.options.Clock, file: s.file}
}

// advance sets the time of hosts and handlers.
func (s *slotted) advance(t *testing.T, d time.Duration) {
	t.Helper()
	s.file.set(t, s.options.Clock.Now().Add(d))
	s.options.Clock.Advance(d)
}

// slottedHost is one of its hosts.
type slottedHost struct {
	*functionshost.Host
	clock *functionshost.Clock
	file  clockFile
	ticks int // that were fired
}

// tick advances to the next firing of the timer, delays the handler by some time, and waits for the
// end of the tick. It returns both times.
func (s *slottedHost) tick(t *testing.T, late time.Duration) (fired, begun time.Time) {
	t.Helper()
	interval := s.interval(t)
	fired = s.clock.Now().Add(interval)
	begun = fired.Add(late)
	s.file.set(t, begun)
	s.clock.Advance(interval)
	s.ticks++
	s.interval(t) // the timer is set again after the tick
	return fired, begun
}

// interval returns how long the timer is set for after all earlier ticks have ended.
func (s *slottedHost) interval(t *testing.T) (d time.Duration) {
	t.Helper()
	testworld.Eventually(t, "an armed timer", func() bool {
		armed := 0
		for _, line := range s.Logs() {
			text, ok := strings.CutPrefix(line.Text, "Timer for 'poll' started with interval '")
			if !ok {
				continue
			}
			if armed++; armed > s.ticks {
				var err error
				d, err = time.ParseDuration(strings.TrimSuffix(text, "'."))
				testworld.Must(t, err)
				return true
			}
		}
		return false
	})
	return d
}

// polled returns the processors that were polled at a time.
func (s *slottedHost) polled(t *testing.T, at time.Time) (names []string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.HandlerURL()+"/api/processors", nil)
	testworld.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	testworld.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	testworld.Must(t, err)
	for _, p := range testworld.Decode[struct {
		Processors []struct {
			Name     string
			PolledAt time.Time
		}
	}](t, body).Processors {
		if p.PolledAt.Equal(at.Truncate(time.Millisecond)) {
			names = append(names, p.Name)
		}
	}
	return names
}

// parseSchedule parses a schedule of six fields.
func parseSchedule(t *testing.T, text string) cron.Schedule {
	t.Helper()
	schedule, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
	testworld.Must(t, err)
	return schedule
}

// randomSchedule returns one with at least one slot within some minutes.
func randomSchedule(random *rand.Rand) string {
	minutes := []string{"*", "*", "*", "*/2", "1-59/3"}[random.IntN(5)]
	first := random.IntN(60)
	switch random.IntN(4) {
	case 0:
		return fmt.Sprintf("*/%d %s * * * *", 1+random.IntN(30), minutes)
	case 1:
		return fmt.Sprintf("%d-59/%d %s * * * *", first, 1+random.IntN(20), minutes)
	case 2:
		return fmt.Sprintf("%d,%d %s * * * *", first, random.IntN(60), minutes)
	}
	return fmt.Sprintf("%d %s * * * *", first, minutes)
}

// TestEverySlotIsPolledOnceHoweverEarlyOrLateTheTimerFires: with many schedules at once, the first
// tick at or after each slot of a processor polls it, and no other tick does.
func TestEverySlotIsPolledOnceHoweverEarlyOrLateTheTimerFires(t *testing.T) {
	t.Parallel()
	many := func(random *rand.Rand) (schedules []string) {
		for range 32 {
			schedules = append(schedules, randomSchedule(random))
		}
		return schedules
	}
	for i, c := range []struct {
		rule, timer string
		schedules   func(*rand.Rand) []string
		ticks       int
	}{
		{"the timer's own schedule", "*/2 * * * * *", func(*rand.Rand) []string { return []string{"*/2 * * * * *"} }, 120},
		{"the timer's own of some minutes", "0 */5 * * * *", func(*rand.Rand) []string { return []string{"0 */5 * * * *", "0 */10 * * * *"} }, 60},
		{"random ones of a timer of every second", "* * * * * *", many, 300},
		{"random ones between the slots of the timer", "*/7 * * * * *", many, 60},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(i), 2))
			timer := parseSchedule(t, c.timer)
			texts := c.schedules(random)
			schedules := make([]cron.Schedule, len(texts))
			for i, text := range texts {
				schedules[i] = parseSchedule(t, text)
			}
			app := newSlotted(t, c.timer, texts...)
			// the host and the test use theirs at the same time
			app.options.Random = rand.New(rand.NewPCG(uint64(i), 1))
			s := app.start(t)
			before := s.clock.Now()
			earlier := 0
			for tick := range c.ticks {
				late := time.Duration(0)
				if random.IntN(3) == 0 {
					late = time.Duration(random.Int64N(int64(400 * time.Millisecond)))
				}
				slot := timer.Next(before)
				fired, begun := s.tick(t, late)
				if fired.Before(slot) {
					earlier++
				}
				var want []string
				for i, schedule := range schedules {
					if tick == 0 || !schedule.Next(before).After(slot) {
						want = append(want, fmt.Sprintf("orders%d", i))
					}
				}
				if got := s.polled(t, begun); !slices.Equal(got, want) {
					t.Fatalf("the tick of %s, fired at %s and begun at %s, polled %q, want %q", slot, fired, begun, got, want)
				}
				before = slot
			}
			if earlier == 0 {
				t.Error("no timer fired early")
			}
		})
	}
}
