package state

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling/sizing"
)

// Format is the version of the encoding of a State. Raise it with a change that an earlier release would
// misread, and not for a field that it may ignore. A State without a version counts as 1
// (docs/operate.md, State).
//
//   - 1: one JSON object
//   - 2: lines of JSON, so that they need not be in memory together: first the State without its leases,
//     then a line for each lease (docs/decisions/0022-speed.md)
const Format = 2

// maxText is the greatest length of a decompressed State, in bytes. States compress to a tenth.
const maxText = 64 << 20

// head is the first line of an encoded State.
type head struct {
	Format int `json:"format"` // first, so that it is known even if the rest cannot be read
	Lines  int `json:"lines"`  // that follow this one
	State
}

// line is what a State has of one lease.
type line struct {
	Lease     string                `json:"lease,omitempty"` // if there is no partition
	Partition *changefeed.Partition `json:"partition,omitempty"`
	Progress  *health.Progress      `json:"progress,omitempty"`
	Same      bool                  `json:"same,omitempty"` // the progress omits what the partition says
	Flow      *sizing.Partition     `json:"flow,omitempty"`
}

// Write is what a Commit stores beside its event.
type Write struct {
	State           []byte
	Sample, Summary []byte // nil if there is none
}

// NewWrite encodes what a Commit of s stores, and checks its event. plain is as for Encode.
func NewWrite(s State, event *Event, plain int) (w Write, err error) {
	if event != nil && (event.Processor != s.Processor || event.Sequence < 1 || event.Sequence > maxSequence) {
		return w, fmt.Errorf("event %d of processor %q cannot be committed with it", event.Sequence, event.Processor)
	}
	w.State, err = Encode(s, plain)
	if err == nil && !s.AttemptedAt.IsZero() {
		w.Sample, err = s.Sample().Encode()
	}
	if err == nil && s.Finished != nil {
		w.Summary, err = json.Marshal(s.Finished)
	}
	return w, err
}

// Encode returns s as stores keep it: as text of up to plain bytes, else with gzip.
func Encode(s State, plain int) ([]byte, error) {
	partitions, flows, others := s.Lag.Partitions, s.Memory.Sizing.Partitions, maps.Clone(s.Health)
	for i := range partitions {
		delete(others, partitions[i].Lease)
	}
	first := head{Format: Format, Lines: len(partitions) + len(others), State: s}
	first.Lag.Partitions, first.Health, first.Memory.Sizing.Partitions = nil, nil, nil
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	failed := encoder.Encode(first)
	put := func(l line) { failed = cmp.Or(failed, encoder.Encode(l)) }
	for i := range partitions {
		l := line{Partition: &partitions[i]}
		if p, ok := s.Health[partitions[i].Lease]; ok {
			l.remember(p, s.Lag.Time)
		}
		if f, ok := flows[partitions[i].Lease]; ok {
			l.follow(f, s.Lag.Time)
		}
		put(l)
	}
	for _, lease := range slices.Sorted(maps.Keys(others)) {
		put(line{Lease: lease, Progress: new(others[lease])})
	}
	if failed != nil || text.Len() <= plain {
		return text.Bytes(), failed
	}
	var packed bytes.Buffer
	zip := writers.Get().(*gzip.Writer)
	defer writers.Put(zip)
	zip.Reset(&packed)
	_, err := text.WriteTo(zip)
	err = cmp.Or(err, zip.Close())
	zip.Reset(nil)
	return packed.Bytes(), err
}

// writers hold more than a megabyte each. Speed counts, since each processor is encoded at each tick.
var writers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // a level that exists
	return w
}}

// remember adds the progress of the partition, which was measured at a time.
func (l *line) remember(p health.Progress, at time.Time) {
	stated := restated(p, l.stated(at))
	if l.Same = reflect.DeepEqual(&p, &stated); l.Same {
		p = restated(p, health.Progress{})
	}
	l.Progress = &p
}

// progress returns what remember was given.
func (l *line) progress(at time.Time) health.Progress {
	if l.Same {
		return restated(*l.Progress, l.stated(at))
	}
	return *l.Progress
}

// restated returns p with what another one has of the fields that a partition states.
func restated(p, by health.Progress) health.Progress {
	p.Position, p.Time, p.SessionLSN, p.CheckpointLSN = by.Position, by.Time, by.SessionLSN, by.CheckpointLSN
	p.Lag, p.Pending, p.Owner, p.LeaseTime = by.Lag, by.Pending, by.Owner, by.LeaseTime
	return p
}

// follow adds the flow of the partition, which was measured at a time. It omits what the partition says, so
// that a row has room for more leases.
func (l *line) follow(f sizing.Partition, at time.Time) {
	if p := l.stated(at); f.Time.Equal(at) && f.Session == p.SessionLSN && f.Checkpoint == p.CheckpointLSN {
		f.Time, f.Session, f.Checkpoint = time.Time{}, 0, 0
	}
	l.Flow = &f
}

// flow returns what follow was given.
func (l *line) flow(at time.Time) sizing.Partition {
	f := *l.Flow
	if p := l.stated(at); f.Time.IsZero() {
		f.Time, f.Session, f.Checkpoint = at, p.SessionLSN, p.CheckpointLSN
	}
	return f
}

// stated returns what the partition, measured at a time, says of its progress.
func (l *line) stated(at time.Time) health.Progress {
	p := l.Partition
	stated := health.Progress{Position: p.Position, Time: at, Pending: p.Pending(), Owner: p.Owner, LeaseTime: p.LeaseTime, Lag: p.Lag}
	if p.SessionLSN != nil {
		stated.SessionLSN = *p.SessionLSN
	}
	if p.CheckpointLSN != nil {
		stated.CheckpointLSN = *p.CheckpointLSN
	}
	return stated
}

var gunzips = sync.Pool{New: func() any { return new(gzip.Reader) }}

// read calls decode for encoded, which may be compressed.
func read(encoded []byte, decode func(*json.Decoder) error) error {
	var text io.Reader = bytes.NewReader(encoded)
	if len(encoded) > 0 && encoded[0] == 0x1f { // of gzip; text begins with a brace
		unzip := gunzips.Get().(*gzip.Reader)
		defer gunzips.Put(unzip)
		if err := unzip.Reset(text); err != nil {
			return err
		}
		text = unzip
	}
	bounded := &io.LimitedReader{R: text, N: maxText + 1}
	err := decode(json.NewDecoder(bounded))
	switch {
	case bounded.N <= 0:
		return fmt.Errorf("it is longer than %d MiB once decompressed", maxText>>20)
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}
