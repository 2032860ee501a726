package state

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling/sizing"
)

// Format is the version of the encoding of a State. It is raised with a change that an earlier release
// would misread; a field that an earlier release may ignore is none. States of the releases that did not
// write it yet count as 1 (docs/operate.md, State).
//
//   - 1: one JSON object
//   - 2: lines of JSON, so that they need not be in memory together: the State without what it has of each
//     lease, and a line for each lease (docs/decisions/0022-speed.md)
const Format = 2

// ErrNewer is wrapped by the error of a State whose format is newer than Format.
var ErrNewer = errors.New("it was written by a newer release of feedscale")

// maxText is the most that a State may have, in bytes, once it is decompressed: states compress to a
// tenth.
const maxText = 64 << 20

// head is the first line of an encoded State.
type head struct {
	Format   int  `json:"format"` // first, so that it is known whatever cannot be read behind it
	Lines    int  `json:"lines"`  // behind this one
	Complete bool `json:"complete"`
	State
}

// line is what a State has of one lease.
type line struct {
	Lease     string                `json:"lease,omitempty"` // where there is no partition
	Partition *changefeed.Partition `json:"partition,omitempty"`
	Progress  *health.Progress      `json:"progress,omitempty"`
	Same      bool                  `json:"same,omitempty"` // what the partition says, too, is left out of the progress
	Flow      *sizing.Flow          `json:"flow,omitempty"`
}

// Encode returns s as stores keep it: as text or, where that has more bytes than plain, with gzip.
func Encode(s State, plain int) ([]byte, error) {
	p := packer{plain: plain}
	defer p.release()
	return encode(s, &p)
}

// EncodeSmall is Encode for a State that has to be as small as it can be, which takes ten times as long.
func EncodeSmall(s State) ([]byte, error) {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestCompression) // a level that exists
	return encode(s, &packer{small: w})
}

func encode(s State, p *packer) ([]byte, error) {
	partitions, progress, flows, others := s.Lag.Partitions, s.Health, s.Memory.Sizing.Flows, s.others()
	first := head{Format: Format, Lines: len(partitions) + len(others), Complete: s.Lag.Complete(), State: s}
	first.Lag.Partitions, first.Health, first.Memory.Sizing.Flows = nil, nil, nil
	encoder := json.NewEncoder(p)
	if err := encoder.Encode(first); err != nil {
		return nil, err
	}
	for i := range partitions {
		l := line{Partition: &partitions[i]}
		if p, ok := progress[partitions[i].Lease]; ok {
			l.remember(p, s.Lag.Time)
		}
		if f, ok := flows[partitions[i].Lease]; ok {
			l.follow(f, s.Lag.Time)
		}
		if err := encoder.Encode(l); err != nil {
			return nil, err
		}
	}
	for _, lease := range others {
		if err := encoder.Encode(line{Lease: lease, Progress: new(progress[lease])}); err != nil {
			return nil, err
		}
	}
	return p.bytes()
}

// others returns the leases that something is remembered of though they are no partitions, sorted.
func (s *State) others() (leases []string) {
	partitions := make(map[string]bool, len(s.Lag.Partitions))
	for i := range s.Lag.Partitions {
		partitions[s.Lag.Partitions[i].Lease] = true
	}
	for lease := range s.Health {
		if !partitions[lease] {
			leases = append(leases, lease)
		}
	}
	slices.Sort(leases)
	return leases
}

// remember adds the progress of the partition, which was measured at a time.
func (l *line) remember(p health.Progress, at time.Time) {
	stated := l.stated(at)
	l.Same = p.Position == stated.Position && p.Time.Equal(stated.Time) && p.SessionLSN == stated.SessionLSN && p.CheckpointLSN == stated.CheckpointLSN &&
		equal(p.Lag, stated.Lag) && p.Pending == stated.Pending && p.Owner == stated.Owner && p.LeaseTime.Equal(stated.LeaseTime)
	if l.Same {
		p.Position, p.Time, p.SessionLSN, p.CheckpointLSN, p.Lag, p.Pending, p.Owner, p.LeaseTime = "", time.Time{}, 0, 0, nil, false, "", time.Time{}
	}
	l.Progress = &p
}

// follow adds the flow of the partition, which was measured at a time. What the partition says, too, is
// left out: a row has room for so many leases.
func (l *line) follow(f sizing.Flow, at time.Time) {
	f.Arrival = rounded(f.Arrival)
	if p := l.stated(at); f.Time.Equal(at) && f.Session == p.SessionLSN && f.Checkpoint == p.CheckpointLSN && f.Owner == p.Owner {
		f.Time, f.Session, f.Checkpoint, f.Owner = time.Time{}, 0, 0, ""
	}
	l.Flow = &f
}

// flow returns what follow was given.
func (l *line) flow(at time.Time) sizing.Flow {
	f := *l.Flow
	if p := l.stated(at); f.Time.IsZero() {
		f.Time, f.Session, f.Checkpoint, f.Owner = at, p.SessionLSN, p.CheckpointLSN, p.Owner
	}
	return f
}

// rounded is a rate, or a time in seconds, with the digits that are stored of it: no decision depends on
// more, and a row has room for so many leases.
func rounded(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64) // of a number that was one
	return y
}

func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// stated returns what the partition, which was measured at a time, says of its progress.
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

// progress returns what remember was given.
func (l *line) progress(at time.Time) health.Progress {
	p := *l.Progress
	if l.Same {
		stated := l.stated(at)
		p.Position, p.Time, p.SessionLSN, p.CheckpointLSN = stated.Position, stated.Time, stated.SessionLSN, stated.CheckpointLSN
		p.Lag, p.Pending, p.Owner, p.LeaseTime = stated.Lag, stated.Pending, stated.Owner, stated.LeaseTime
	}
	return p
}

// Open returns the Record of an encoded State, whose leases Unpack adds: encoded must not change until
// then. The error wraps ErrNewer where the format is newer than this release's.
func Open(encoded []byte) (Record, error) {
	var first head
	err := read(encoded, func(d *json.Decoder) error { return d.Decode(&first) })
	if first.Format > Format {
		return Record{}, fmt.Errorf("%w, in format %d of states, and this release reads up to %d: run that release again, or a later one; or delete this state, which forgets what was decided", ErrNewer, first.Format, Format)
	}
	if err != nil {
		return Record{}, err
	}
	r := Record{State: first.State}
	if first.Format > 1 {
		r.packed, r.leases, r.complete = encoded, first.Lines, first.Complete
		return r, nil
	}
	var before struct {
		Memory struct {
			Progress health.Memory `json:"progress"`
		} `json:"memory"`
	}
	err = read(encoded, func(d *json.Decoder) error { return d.Decode(&before) })
	r.State.Health = before.Memory.Progress
	return r, err
}

// Packed is a Record as it is stored, of which nothing is decoded: a tick holds many at once. The zero value
// is the zero Record.
type Packed struct {
	encoded []byte // nil where whole is all of it
	version Version
	outbox  []Event
	explain func(error) error
	whole   *Record
}

// Pack returns a Record, whose State was not changed since it was loaded, for Unpack to bring it back.
func (r *Record) Pack() Packed {
	if r.packed == nil {
		return Packed{whole: r}
	}
	return Packed{encoded: r.packed, version: r.Version, outbox: r.Outbox, explain: r.explain}
}

// Unpack returns the Record, with what its State has of each lease.
func (p Packed) Unpack() (Record, error) {
	switch {
	case p.encoded != nil:
		r := Record{Version: p.version, Outbox: p.outbox, packed: p.encoded, explain: p.explain}
		err := r.unpack(true)
		return r, err
	case p.whole != nil:
		return *p.whole, nil
	default:
		return Record{}, nil
	}
}

// Unpack completes the State of a Record by what it has of each lease. It does nothing where that is done.
func (r *Record) Unpack() error {
	if r.packed == nil {
		return nil
	}
	return r.unpack(false)
}

// unpack decodes what is packed: the leases and, with all, what comes before them.
func (r *Record) unpack(all bool) error {
	lag, memory := &r.State.Lag, &r.State.Memory
	err := read(r.packed, func(d *json.Decoder) error {
		first := any(&struct{}{})
		if all {
			first = &head{}
		}
		if err := d.Decode(first); err != nil {
			return err
		}
		if h, ok := first.(*head); ok {
			r.State, r.leases, r.complete = h.State, h.Lines, h.Complete
		}
		const sane = 1 << 16 // whatever a damaged state says
		lag.Partitions = make([]changefeed.Partition, 0, min(r.leases, sane))
		r.State.Health = make(health.Memory, min(r.leases, sane))
		memory.Sizing.Flows = make(map[string]sizing.Flow, min(r.leases, sane))
		for range r.leases {
			var l line
			if err := d.Decode(&l); err != nil {
				return err
			}
			if l.Partition != nil {
				l.Lease = l.Partition.Lease
				lag.Partitions = append(lag.Partitions, *l.Partition)
			}
			if l.Progress != nil {
				r.State.Health[l.Lease] = l.progress(lag.Time)
			}
			if l.Flow != nil {
				memory.Sizing.Flows[l.Lease] = l.flow(lag.Time)
			}
		}
		if err := d.Decode(&struct{}{}); err != io.EOF { // which says that the checksum is right, too
			return cmp.Or(err, errors.New("more follows its end"))
		}
		return nil
	})
	if len(lag.Partitions) == 0 {
		lag.Partitions = nil
	}
	if len(r.State.Health) == 0 {
		r.State.Health = nil
	}
	if len(memory.Sizing.Flows) == 0 {
		memory.Sizing.Flows = nil
	}
	r.packed = nil
	if err != nil && r.explain != nil {
		return r.explain(err)
	}
	return err
}

// Explain has an error of Unpack be what explain makes of it: it names the store and the processor.
func (r *Record) Explain(explain func(error) error) { r.explain = explain }

// Leases is how many leases the Record has something of, unpacked or not.
func (r *Record) Leases() int { return max(r.leases, len(r.State.Lag.Partitions)) }

// Complete reports whether the last poll left nothing unknown, unpacked or not.
func (r *Record) Complete() bool {
	if r.packed == nil {
		return r.State.Lag.Complete()
	}
	return r.complete
}

// packer takes text as it is up to plain bytes, and all of it with gzip once there are more.
type packer struct {
	text   bytes.Buffer // not compressed yet
	packed bytes.Buffer
	plain  int
	small  *gzip.Writer // in place of the fast one; nil = that
	gzip   *gzip.Writer // nil = nothing is compressed yet
}

// heldText is up to how many bytes a state is held as text before it takes the writer: of many small ones,
// none waits for more than the compression of others.
const heldText = 32 << 10

// fast is the one writer that all share, since it has more than a megabyte. Speed counts, since this is done
// for each processor at each tick: more effort makes a state a fifth smaller.
var fast struct {
	sync.Mutex
	gzip *gzip.Writer // nil until it is needed
}

func (p *packer) Write(text []byte) (int, error) {
	if p.gzip == nil {
		if p.text.Len()+len(text) <= max(p.plain, heldText) {
			return p.text.Write(text)
		}
		if err := p.compress(); err != nil {
			return 0, err
		}
	}
	return p.gzip.Write(text)
}

// compress begins to compress, with the text that is held.
func (p *packer) compress() error {
	if p.gzip = p.small; p.gzip == nil {
		fast.Lock()
		if fast.gzip == nil {
			fast.gzip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // a level that exists
		}
		p.gzip = fast.gzip
	}
	p.gzip.Reset(&p.packed)
	_, err := p.text.WriteTo(p.gzip)
	p.text = bytes.Buffer{}
	return err
}

// bytes returns what was written.
func (p *packer) bytes() ([]byte, error) {
	if p.gzip == nil && p.text.Len() <= p.plain {
		return p.text.Bytes(), nil
	}
	if p.gzip == nil {
		if err := p.compress(); err != nil {
			return nil, err
		}
	}
	err := p.gzip.Close()
	return p.packed.Bytes(), err
}

// release gives the writer back, and what it wrote to with it.
func (p *packer) release() {
	if p.gzip != nil && p.small == nil {
		p.gzip.Reset(nil)
		fast.Unlock()
	}
}

var gunzips = sync.Pool{New: func() any { return new(gzip.Reader) }}

// read has decode read encoded, be it compressed or not.
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
