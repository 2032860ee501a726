package leasefake

import (
	"encoding/base64"
	"encoding/json"
	"time"
)

// StartFrom is where a Java processor starts in a feed of which it has no
// position. The fields are named as Java writes them.
type StartFrom struct {
	Type          string
	PointInTimeMs int64  `json:",omitempty"` // milliseconds since 1970
	Etag          string `json:",omitempty"`
	Range         *Range `json:",omitempty"`
}

// FromNow starts with what is written after the start.
func FromNow() StartFrom { return StartFrom{Type: "NOW"} }

// FromBeginning starts with the first document.
func FromBeginning() StartFrom { return StartFrom{Type: "BEGINNING"} }

// FromTime starts with what was written since a time.
func FromTime(t time.Time) StartFrom {
	return StartFrom{Type: "POINT_IN_TIME", PointInTimeMs: t.UnixMilli()}
}

// FromLease starts where another reader of the range has come to: etag is the
// continuation of that.
func FromLease(etag string, span Range) StartFrom {
	return StartFrom{Type: "LEASE", Etag: etag, Range: &span}
}

// FromLegacyCheckpoint starts from a checkpoint of before there were states,
// which the state does not repeat.
func FromLegacyCheckpoint() StartFrom { return StartFrom{Type: "LEGACY_CHECKPOINT"} }

// state is what Java wraps into the continuation of an EPK lease, in its order:
// with a position, or with the range alone.
type state struct {
	Version      int    `json:"V"`
	ContainerRID string `json:"Rid"`
	Mode         string
	StartFrom    StartFrom
	Continuation *position `json:",omitempty"`
	Range        *Range    `json:",omitempty"`
}

// position is how far a reader has come. Java reads several ranges in turn with
// it; the leases of a processor have one.
type position struct {
	Version      int    `json:"V"`
	ContainerRID string `json:"Rid"`
	Continuation []rangePosition
	Range        Range
}

type rangePosition struct {
	ETag  *string `json:"token"`
	Range Range   `json:"range"`
}

// positioned is the state that has the continuation of the fields.
func positioned(container string, span Range, from StartFrom, f Fields) *state {
	return &state{
		Version: 1, ContainerRID: container, Mode: f.javaMode(), StartFrom: from,
		Continuation: &position{
			Version: 1, ContainerRID: container, Continuation: []rangePosition{{f.Continuation, span}}, Range: span,
		},
	}
}

// wrap is the state as text: JSON in base64 for URLs, padded.
func (s *state) wrap() string {
	text, _ := json.Marshal(s) // never fails: it has texts and numbers only
	return base64.URLEncoding.EncodeToString(text)
}
