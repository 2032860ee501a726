package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// The fixed attributes of a scale event's CloudEvents envelope, as docs/act.md has them.
const (
	SpecVersion     = "1.0"
	Type            = "feedscale.scale.v1"
	DefaultSource   = "feedscale"
	ContentType     = "application/cloudevents+json" // of the encoded event as a whole
	dataContentType = "application/json"
)

// MaxSequence is the greatest sequence an event can carry: its id has twelve
// digits for it, so that ids sort as their events do.
const MaxSequence = 999_999_999_999

// ScaleEvent is a decision that is published: a CloudEvents 1.0 event. Its id
// and subject follow from the data.
type ScaleEvent struct {
	Source string // CloudEvents source; "" = DefaultSource
	Time   time.Time
	Data

	body []byte // as Decode read it; nil for an event that was made here
}

// Data is what a scale event says. A nil number is unknown, which is never the
// same as zero; every field is present in the encoded event.
type Data struct {
	Processor         string            `json:"processor"`
	Sequence          int64             `json:"sequence"`         // 1..MaxSequence, rising by one within a processor
	DesiredReplicas   int               `json:"desiredReplicas"`  // at least 0
	PreviousReplicas  *int              `json:"previousReplicas"` // nil for the first decision of a processor
	Active            bool              `json:"active"`           // whether KEDA should keep the processor above zero
	Direction         string            `json:"direction"`        // out, in or none
	MetricValue       int64             `json:"metricValue"`      // capped lag, at least 0, for a scaler with the threshold as its target
	Lag               *int64            `json:"lag"`              // pending transactions, at least 0
	ChangeAgeSeconds  *int64            `json:"changeAgeSeconds"` // of the oldest pending change, at least 0
	PartitionCount    *int              `json:"partitionCount"`
	PartitionsWithLag *int              `json:"partitionsWithLag"`
	Complete          bool              `json:"complete"` // no partition is unknown
	Status            string            `json:"status"`   // the worst of the partitions
	Reasons           []Reason          `json:"reasons"`  // every step that had a say, in order
	Target            map[string]string `json:"target"`   // the labels the processors file gives to what is scaled
}

// Reason is one step of the decision: which rule, what it made of the
// replicas, and why.
type Reason struct {
	Step     string `json:"step"`
	Replicas int    `json:"replicas"`
	Why      string `json:"why"`
}

// ID identifies the event. It is also the message id by which a queue detects
// duplicates.
func (d Data) ID() string { return fmt.Sprintf("%s-%012d", d.Processor, d.Sequence) }

// envelope is the event as it is written, in this order.
type envelope struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            Data      `json:"data"`
}

// Encode writes the event as one line of JSON without a line end. Equal events
// have equal bytes. An event that Decode would refuse is an error.
func (e ScaleEvent) Encode() ([]byte, error) {
	if e.Source == "" {
		e.Source = DefaultSource
	}
	if e.Reasons == nil {
		e.Reasons = []Reason{}
	}
	if e.Target == nil {
		e.Target = map[string]string{}
	}
	if err := e.validate(); err != nil {
		return nil, fmt.Errorf("encoding a scale event of processor %q: %w", e.Processor, err)
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // reasons say "<" and ">" and are read by people
	err := enc.Encode(envelope{
		SpecVersion:     SpecVersion,
		ID:              e.ID(),
		Source:          e.Source,
		Type:            Type,
		Subject:         e.Processor,
		Time:            e.Time.UTC(),
		DataContentType: dataContentType,
		Data:            e.Data,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding scale event %s: %w", e.ID(), err)
	}
	return bytes.TrimSuffix(line.Bytes(), []byte("\n")), nil
}

// Body is the event as it was published: the very bytes that Decode read, with
// whatever else they say, or those of Encode where the event was made here. They
// are not to be changed.
func (e ScaleEvent) Body() ([]byte, error) {
	if e.body != nil {
		return e.body, nil
	}
	return e.Encode()
}

// validate says what makes the event one that no consumer could act upon.
func (e ScaleEvent) validate() error {
	switch {
	case e.Source == "":
		return fmt.Errorf("source is empty")
	case e.Time.IsZero():
		return fmt.Errorf("time is missing")
	case e.Processor == "":
		return fmt.Errorf("data.processor is empty")
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
		return fmt.Errorf("data.status is empty")
	}
	return nil
}
