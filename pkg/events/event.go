package events

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

//go:embed scale-event.schema.json
var schema string

// Schema is the JSON Schema (2020-12) of an encoded scale event, for consumers
// in any language.
func Schema() string { return schema }

// The fixed attributes of a scale event's CloudEvents envelope, as docs/scale-events.md has them.
const (
	SpecVersion     = "1.0"
	Type            = "feedscale.scale.v1"
	Source          = "feedscale"
	ContentType     = "application/cloudevents+json" // of the encoded event as a whole
	dataContentType = "application/json"
)

// An event's id has a fixed number of digits for epoch and sequence, so that ids sort as their events do.
const (
	MaxEpoch    = 9_999_999_999 // Unix seconds: the year 2286
	MaxSequence = 999_999_999_999
)

// ScaleEvent is a published decision: a CloudEvents 1.0 event. Its id and subject follow from the data.
type ScaleEvent struct {
	Time time.Time
	Data

	body []byte // as Decode read it; nil for an event that was made here
}

// Data is the content of a scale event, of a processor or of a group of processors that run in one
// deployment. A nil number is unknown, which is never the same as zero. Every field is present in the
// encoded event, except Members in that of a processor, and Findings and Throughput if there are none.
type Data struct {
	Processor         string            `json:"processor"`        // "" in the event of a group, encoded as null
	Group             string            `json:"group"`            // "" in the event of a processor, encoded as null
	Epoch             int64             `json:"epoch"`            // Unix seconds at which the state of the subject began, 0..MaxEpoch; 0 in events of releases that had none
	Sequence          int64             `json:"sequence"`         // 1..MaxSequence, rising within an epoch of a subject; gaps are allowed
	DesiredReplicas   int               `json:"desiredReplicas"`  // at least 0
	PreviousReplicas  *int              `json:"previousReplicas"` // nil for the first decision of a subject
	Active            bool              `json:"active"`           // whether KEDA should keep the subject above zero
	Direction         string            `json:"direction"`        // out, in or none
	MetricValue       int64             `json:"metricValue"`      // capped lag, at least 0, for a scaler with the threshold as its target
	Lag               *int64            `json:"lag"`              // pending transactions, at least 0
	ChangeAgeSeconds  *int64            `json:"changeAgeSeconds"` // of the oldest pending change, at least 0
	PartitionCount    *int              `json:"partitionCount"`
	PartitionsWithLag *int              `json:"partitionsWithLag"`
	Complete          bool              `json:"complete"`           // no partition is unknown
	Status            string            `json:"status"`             // the worst of the partitions
	Reasons           []Reason          `json:"reasons"`            // every step that had a say, in order
	Target            map[string]string `json:"target"`             // the labels the processors file gives to what is scaled
	Findings          []Finding         `json:"findings,omitempty"` // what an operator should know of the subject, the worst first
	Members           []Member          `json:"members,omitempty"`
	Throughput        []Throughput      `json:"throughput,omitempty"` // of the containers that follow the subject; none where there are none
}

// Throughput is the throughput of a container that follows the subject, in request units a second.
type Throughput struct {
	Account     string `json:"account"`                // host
	Container   string `json:"container"`              // DATABASE/ID, or a database whose containers share it
	Mode        string `json:"mode"`                   // recommend: somebody else is to provision it; apply: feedscale does
	Provisioned *int   `json:"provisionedRUPerSecond"` // nil if it could not be read
	Desired     *int   `json:"desiredRUPerSecond"`     // nil if nothing could be decided
	Needed      *int   `json:"neededRUPerSecond"`      // by the replicas, before every bound; nil = unknown
	AtLimit     bool   `json:"atLimit"`                // the replicas need more than the container may have
}

// Member is one processor of a group, as the group's decision saw it.
type Member struct {
	Processor       string `json:"processor"`
	DesiredReplicas *int   `json:"desiredReplicas"` // what the processor alone asks for, at least 0; nil if nothing was ever decided
	Lag             *int64 `json:"lag"`             // pending transactions, at least 0
	Status          string `json:"status"`
}

// Reason is one step of the decision: its name, the replicas after it, and why.
type Reason struct {
	Step     string `json:"step"`
	Replicas int    `json:"replicas"`
	Why      string `json:"why"`
}

// Finding is something that an operator should know of the subject (docs/status.md).
type Finding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"` // critical, warning or info
	Sentence string `json:"sentence"`
	Remedy   string `json:"remedy"`
}

// Subject is the name of the processor or group that the event is about.
func (d Data) Subject() string {
	if d.Group != "" {
		return d.Group
	}
	return d.Processor
}

// ID identifies the event; by it a queue detects duplicates. Of two events of one subject, the newer has the
// greater id, compared as text: that of a later epoch or, within an epoch, of a higher sequence. An event of a
// release without epochs comes before all with one.
func (d Data) ID() string {
	if d.Epoch == 0 {
		return fmt.Sprintf("%s-%012d", d.Subject(), d.Sequence)
	}
	return fmt.Sprintf("%s-%010d-%012d", d.Subject(), d.Epoch, d.Sequence)
}

// envelope is the event as it is written, in this order.
type envelope struct {
	SpecVersion     string      `json:"specversion"`
	ID              string      `json:"id"`
	Source          string      `json:"source"`
	Type            string      `json:"type"`
	Subject         string      `json:"subject"`
	Time            time.Time   `json:"time"`
	DataContentType string      `json:"datacontenttype"`
	Data            encodedData `json:"data"`
}

// encodedData is Data with null for the name that the event does not have.
type encodedData struct {
	Processor *string `json:"processor"`
	Group     *string `json:"group"`
	Data
}

// Encode writes the event as one line of JSON without a line end. Equal events
// have equal bytes. An event that Decode would refuse is an error.
func (e ScaleEvent) Encode() ([]byte, error) {
	if e.Reasons == nil {
		e.Reasons = []Reason{}
	}
	if e.Target == nil {
		e.Target = map[string]string{}
	}
	if err := e.validate(); err != nil {
		return nil, fmt.Errorf("encoding a scale event of %q: %w", e.Subject(), err)
	}
	data := encodedData{Data: e.Data}
	if e.Group != "" {
		data.Group = &e.Group
	} else {
		data.Processor = &e.Processor
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // reasons say "<" and ">" and are read by people
	err := enc.Encode(envelope{SpecVersion, e.ID(), Source, Type, e.Subject(), e.Time.UTC(), dataContentType, data})
	if err != nil {
		return nil, fmt.Errorf("encoding scale event %s: %w", e.ID(), err)
	}
	return bytes.TrimSuffix(line.Bytes(), []byte("\n")), nil
}

// Body returns the event as it was published: the bytes that Decode read, or those of Encode for an event
// that was made here. They must not be changed.
func (e ScaleEvent) Body() ([]byte, error) {
	if e.body != nil {
		return e.body, nil
	}
	return e.Encode()
}

// validate returns an error for an event that no consumer could act on.
func (e ScaleEvent) validate() error {
	name := "data.processor"
	if e.Group != "" {
		name = "data.group"
	}
	switch {
	case e.Time.IsZero():
		return errors.New("time is missing")
	case e.Processor != "" && e.Group != "":
		return fmt.Errorf("data.processor is %q and data.group is %q, one of them must be null", e.Processor, e.Group)
	case !IsName(e.Subject()):
		return fmt.Errorf("%s is %q, allowed are %s", name, e.Subject(), NameForm)
	case e.Group != "" && len(e.Members) == 0:
		return errors.New("data.members is empty, a group has at least one")
	case e.Group == "" && e.Members != nil:
		return errors.New("data.members is given, and data.group is null")
	case e.Epoch < 0 || e.Epoch > MaxEpoch:
		return fmt.Errorf("data.epoch is %d, allowed are 0 to %d", e.Epoch, int64(MaxEpoch))
	case e.Sequence < 1 || e.Sequence > MaxSequence:
		return fmt.Errorf("data.sequence is %d, allowed are 1 to %d", e.Sequence, int64(MaxSequence))
	case e.DesiredReplicas < 0:
		return fmt.Errorf("data.desiredReplicas is %d, it must be at least 0", e.DesiredReplicas)
	case e.PreviousReplicas != nil && *e.PreviousReplicas < 0:
		return fmt.Errorf("data.previousReplicas is %d, it must be null or at least 0", *e.PreviousReplicas)
	case e.Direction != "out" && e.Direction != "in" && e.Direction != "none":
		return fmt.Errorf("data.direction is %q, allowed are out, in and none", e.Direction)
	case e.MetricValue < 0:
		return fmt.Errorf("data.metricValue is %d, it must be at least 0", e.MetricValue)
	case e.Status == "":
		return errors.New("data.status is empty")
	}
	for i, m := range e.Members {
		switch {
		case !IsName(m.Processor):
			return fmt.Errorf("data.members[%d].processor is %q, allowed are %s", i, m.Processor, NameForm)
		case m.DesiredReplicas != nil && *m.DesiredReplicas < 0:
			return fmt.Errorf("data.members[%d].desiredReplicas is %d, it must be null or at least 0", i, *m.DesiredReplicas)
		case m.Status == "":
			return fmt.Errorf("data.members[%d].status is empty", i)
		}
	}
	return nil
}

// NameForm says in words what [IsName] allows.
const NameForm = "1 to 63 lower-case letters, digits and hyphens, a letter or digit first and last"

var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// IsName reports whether text can be the name of a processor or group (docs/configure.md, The processors
// file). Names are used in URLs, in keys of the state table and in message ids.
func IsName(text string) bool { return nameForm.MatchString(text) }
