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
		Memory: scaling.Memory{Partitions: leases, Sizing: sizing.Memory{Flows: map[string]sizing.Flow{}}},
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
		s.Memory.Sizing.Flows[p.Lease] = sizing.Flow{Time: at, Known: true, Arrival: 1.25, Session: *p.SessionLSN, Checkpoint: *p.CheckpointLSN, Owner: p.Owner}
	}
	if leases == 0 {
		s.Memory.Sizing.Flows = nil
	}
	s.Health["gone"] = health.Progress{Position: `"5"`, Time: at}
	return s
}

func TestAStateComesBackAsItWas(t *testing.T) {
	t.Parallel()
	many := remembered(5000)
	unread := remembered(0)
	unread.Lag.Error = "the leases could not be read"
	encodings := map[string]func(state.State) ([]byte, error){
		"as text":   func(s state.State) ([]byte, error) { return state.Encode(s, 64<<20) },
		"with gzip": func(s state.State) ([]byte, error) { return state.Encode(s, 100) },
		"small":     state.EncodeSmall,
	}
	for name, encode := range encodings {
		for _, want := range []state.State{remembered(3), many, unread, {Processor: "orders"}} {
			encoded, err := encode(want)
			if err != nil {
				t.Fatal(err)
			}
			record, err := state.Open(encoded)
			if err != nil {
				t.Fatal(name, err)
			}
			if n, complete := record.Leases(), record.Complete(); n < len(want.Lag.Partitions) || n > len(want.Lag.Partitions)+1 || complete != want.Lag.Complete() {
				t.Errorf("%s, %d leases: packed it has %d, complete %t", name, len(want.Lag.Partitions), n, complete)
			}
			for range 2 { // the second does nothing
				if err := record.Unpack(); err != nil {
					t.Fatal(name, err)
				}
			}
			if !reflect.DeepEqual(record.State, want) {
				t.Errorf("%s, %d leases: it is another one:\n%+v\n%+v", name, len(want.Lag.Partitions), record.State.Health["1"], want.Health["1"])
			}
			if record.Complete() != want.Lag.Complete() {
				t.Errorf("%s, %d leases: unpacked it is complete %t", name, len(want.Lag.Partitions), record.Complete())
			}
		}
	}
	zipped, _ := encodings["with gzip"](many)
	small, _ := encodings["small"](many)
	if len(small) >= len(zipped) {
		t.Errorf("small it has %d bytes, and else %d", len(small), len(zipped))
	}
}

func TestARecordThatWasPackedComesBack(t *testing.T) {
	t.Parallel()
	want := remembered(3)
	second, err := state.Encode(want, 100)
	if err != nil {
		t.Fatal(err)
	}
	first, err := json.Marshal(want) // format 1
	if err != nil {
		t.Fatal(err)
	}
	for name, encoded := range map[string][]byte{"of this format": second, "of the first format": first} {
		record, err := state.Open(encoded)
		if err != nil {
			t.Fatal(name, err)
		}
		record.Version, record.Outbox = "5", []state.Event{{Processor: "orders", Sequence: 7}}
		packed := record.Pack()
		if err := record.Unpack(); err != nil {
			t.Fatal(name, err)
		}
		back, err := packed.Unpack()
		if err != nil || back.Version != "5" || len(back.Outbox) != 1 || !reflect.DeepEqual(back.State, record.State) || back.State.Sequence != want.Sequence {
			t.Errorf("%s: got %+v, %v", name, back, err)
		}
		if back.Leases() != record.Leases() || back.Complete() != record.Complete() {
			t.Errorf("%s: it has %d leases, complete %t", name, back.Leases(), back.Complete())
		}
	}
	if none, err := (state.Packed{}).Unpack(); err != nil || none.Version != "" {
		t.Errorf("of nothing: got %+v, %v", none, err)
	}
	told := errors.New("told")
	record, err := state.Open(second)
	if err != nil {
		t.Fatal(err)
	}
	record.Explain(func(error) error { return told })
	second[len(second)-5] ^= 1 // in the checksum
	if _, err := record.Pack().Unpack(); !errors.Is(err, told) {
		t.Errorf("got %v", err)
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
			record, err := state.Open(whole[:cut])
			if err == nil {
				err = record.Unpack()
			}
			if err == nil {
				t.Fatalf("%s: the first %d of %d bytes pass for a state", name, cut, len(whole))
			}
		}
	}
	told := errors.New("told")
	whole, _ := state.Encode(remembered(3), 1<<20)
	record, err := state.Open(whole[:len(whole)-20])
	if err != nil {
		t.Fatal(err)
	}
	record.Explain(func(err error) error {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
		return told
	})
	if err := record.Unpack(); !errors.Is(err, told) {
		t.Errorf("got %v", err)
	}
	if _, err := state.Open([]byte(strings.Replace(string(whole), `"format":2`, `"format":3`, 1))); !errors.Is(err, state.ErrNewer) {
		t.Errorf("a newer format: %v", err)
	}
}
