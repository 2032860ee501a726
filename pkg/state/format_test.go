package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/scaling/sizing"
	"github.com/feedscale/feedscale/pkg/state"
)

// remembered is a State of so many leases. One partition has a progress that says the same, one another one
// of an earlier poll, and one none; one progress is of a lease that is no partition.
func remembered(leases int) state.State {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := state.State{
		Processor: "orders", AttemptedAt: at, Sequence: 7,
		Lag:    changefeed.ProcessorLag{Time: at},
		Health: health.Memory{},
		Memory: scaling.Memory{Partitions: leases, Sizing: sizing.Memory{Partitions: map[string]sizing.Partition{}}},
	}
	for i := range leases {
		p := changefeed.Partition{
			Lease: fmt.Sprint(i), Owner: fmt.Sprint("pod-", i%10), Lag: new(int64(i % 3)), Status: changefeed.StatusLagging, LeaseTime: at.Add(-time.Second),
			SessionLSN: new(int64(1000 + i)), CheckpointLSN: new(int64(1000 + i - i%3)), Position: fmt.Sprintf("%q", fmt.Sprint(1000+i-i%3)),
		}
		s.Lag.Partitions = append(s.Lag.Partitions, p)
		g := health.Progress{
			Position: p.Position, Time: at, SessionLSN: *p.SessionLSN, CheckpointLSN: *p.CheckpointLSN, Lag: p.Lag, Pending: *p.Lag > 0, Owner: p.Owner, LeaseTime: p.LeaseTime,
		}
		switch i {
		case 1:
			g.Time, g.SessionLSN = at.Add(-time.Minute), 900
		case 2:
			continue
		}
		s.Health[p.Lease] = g
		s.Memory.Sizing.Partitions[p.Lease] = sizing.Partition{Time: at, Known: true, Arrival: 1.25, Session: *p.SessionLSN, Checkpoint: *p.CheckpointLSN}
	}
	if leases == 0 {
		s.Memory.Sizing.Partitions = nil
	}
	s.Health["gone"] = health.Progress{Position: `"5"`, Time: at}
	return s
}

// decoded is what an encoded State has, at once and when it is decoded.
func decoded(t *testing.T, encoded []byte) (state.Entry, state.State) {
	t.Helper()
	stored, err := state.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stored.State()
	if err != nil {
		t.Fatal(err)
	}
	return stored, s
}

func TestAStateComesBackAsItWas(t *testing.T) {
	t.Parallel()
	many := remembered(5000)
	unread := remembered(0)
	unread.Lag.Error = "the leases could not be read"
	encodings := map[string]func(state.State) ([]byte, error){
		"as text":   func(s state.State) ([]byte, error) { return state.Encode(s, 64<<20) },
		"with gzip": func(s state.State) ([]byte, error) { return state.Encode(s, 100) },
		"format 1":  func(s state.State) ([]byte, error) { return json.Marshal(s) },
	}
	for name, encode := range encodings {
		for _, want := range []state.State{remembered(3), many, unread, {Processor: "orders"}} {
			encoded, err := encode(want)
			if err != nil {
				t.Fatal(err)
			}
			stored, got := decoded(t, encoded)
			if head := stored.Head(); head.Sequence != want.Sequence || head.Processor != want.Processor {
				t.Errorf("%s, %d leases: at once it is %+v", name, len(want.Lag.Partitions), head)
			}
			if name != "format 1" && stored.Head().Lag.Partitions != nil {
				t.Errorf("%s: its leases are decoded before anybody asks", name)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %d leases: it is another one:\n%+v\n%+v", name, len(want.Lag.Partitions), got.Health["1"], want.Health["1"])
			}
			if _, again := decoded(t, encoded); !reflect.DeepEqual(again, got) {
				t.Errorf("%s, %d leases: decoded again it is another one", name, len(want.Lag.Partitions))
			}
		}
	}
}

func TestADocumentThatAnEarlierReleaseStoredAsAStateIsRead(t *testing.T) {
	t.Parallel()
	type document struct {
		Sequence int64 `json:"sequence"`
	}
	for name, plain := range map[string]int{"text": 1 << 20, "gzip": 0} {
		encoded, err := state.Encode(state.State{Processor: "signal.queues", Sequence: 7}, plain)
		if err != nil {
			t.Fatal(err)
		}
		var got document
		if err := (state.Document{Text: encoded}).Decode(&got); err != nil || got.Sequence != 7 {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		err = state.Document{Name: "signal.queues", Text: encoded[:len(encoded)/3]}.Decode(&got)
		if err == nil || !strings.Contains(err.Error(), "signal.queues") {
			t.Errorf("%s, cut: %v", name, err)
		}
	}
}

func TestWhatAProgressSharesWithItsPartitionIsStoredOnce(t *testing.T) {
	t.Parallel()
	encoded, err := state.Encode(remembered(1), 1<<20)
	if n := bytes.Count(encoded, []byte("pod-0")); err != nil || n != 1 {
		t.Errorf("the owner is there %d times, %v: %s", n, err, encoded)
	}
}

func TestAStateThatIsNotWholeIsAnError(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]int{"text": 1 << 20, "gzip": 0} {
		whole, err := state.Encode(remembered(50), plain)
		if err != nil {
			t.Fatal(err)
		}
		for cut := 0; cut < len(whole)-1; cut += 1 + cut%7 {
			stored, err := state.Decode(whole[:cut])
			if err == nil {
				_, err = stored.State()
			}
			if err == nil {
				t.Fatalf("%s: the first %d of %d bytes pass for a state", name, cut, len(whole))
			}
		}
	}
	whole, _ := state.Encode(remembered(3), 1<<20)
	stored, err := state.Decode(whole[:len(whole)-20])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stored.State(); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), `"orders"`) || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("got %v, want an error that names the processor and says what to do", err)
	}
	zipped, _ := state.Encode(remembered(3), 0)
	zipped[len(zipped)-5] ^= 1 // in the checksum
	if stored, err := state.Decode(zipped); err == nil {
		if _, err = stored.State(); err == nil || !strings.Contains(err.Error(), `"orders"`) {
			t.Errorf("a wrong checksum: %v", err)
		}
	}
	if _, err := state.Decode([]byte(strings.Replace(string(whole), `"format":2`, `"format":3`, 1))); err == nil || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("a newer format: %v", err)
	}
}
