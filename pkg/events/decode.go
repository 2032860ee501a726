package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxBody is the most bytes that an encoded scale event may have. It is what a state table keeps of one,
// with room to spare, and as long as a message of Service Bus in the premium tier may be unless that is
// raised (https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas).
const MaxBody = 1 << 20

// Decode reads an encoded scale event of at most MaxBody bytes. Whatever else the event carries, as
// CloudEvents extensions or as later fields of the data, is ignored; anything
// missing, of another type or contradictory is an error that names it, fit to
// be the reason for which a consumer dead-letters the message. It may repeat what
// the event says, so that it is not for a log. Body returns the bytes again.
func Decode(body []byte) (ScaleEvent, error) {
	if len(body) > MaxBody {
		return ScaleEvent{}, fmt.Errorf("not a scale event: longer than %d KiB", MaxBody>>10)
	}
	e, err := decode(body)
	if err != nil {
		return ScaleEvent{}, fmt.Errorf("not a scale event: %w", err)
	}
	e.body = bytes.Clone(body)
	return e, nil
}

func decode(body []byte) (ScaleEvent, error) {
	root, err := object(body)
	if err != nil {
		return ScaleEvent{}, err
	}
	var (
		e                                             ScaleEvent
		specVersion, id, eventType, subject, dataType string
		data                                          json.RawMessage
	)
	env := fieldReader{fields: root}
	env.required("specversion", &specVersion)
	env.required("type", &eventType)
	if env.err() == nil { // another version or type explains every field that is missing
		if specVersion != SpecVersion {
			return ScaleEvent{}, fmt.Errorf("specversion is %q, this consumer reads %q", specVersion, SpecVersion)
		}
		if eventType != Type {
			return ScaleEvent{}, fmt.Errorf("type is %q, this consumer reads %q", eventType, Type)
		}
	}
	env.required("id", &id)
	env.required("source", &e.Source)
	env.required("subject", &subject)
	env.required("time", &e.Time)
	env.required("datacontenttype", &dataType)
	env.required("data", &data)
	if err := env.err(); err != nil {
		return ScaleEvent{}, err
	}
	if dataType != dataContentType {
		return ScaleEvent{}, fmt.Errorf("datacontenttype is %q, it must be %q", dataType, dataContentType)
	}
	if e.Data, err = decodeData(data); err != nil {
		return ScaleEvent{}, err
	}
	e.Time = e.Time.UTC()
	if err := e.validate(); err != nil {
		return ScaleEvent{}, err
	}
	if subject != e.Subject() {
		return ScaleEvent{}, fmt.Errorf("subject is %q and data.processor or data.group is %q, they must be the same", subject, e.Subject())
	}
	if id != e.ID() {
		return ScaleEvent{}, fmt.Errorf("id is %q, subject, epoch and sequence make it %q", id, e.ID())
	}
	return e, nil
}

func decodeData(raw json.RawMessage) (Data, error) {
	fields, err := object(raw)
	if err != nil {
		return Data{}, fmt.Errorf("data: %w", err)
	}
	var d Data
	r := fieldReader{fields: fields, prefix: "data."}
	if r.has("epoch") || r.has("group") {
		r.name("group", &d.Group)
		r.required("epoch", &d.Epoch)
	} // else an event of a release that had neither, which may have waited in a queue for long
	if d.Group == "" {
		r.required("processor", &d.Processor)
		if r.has("members") {
			r.problems = append(r.problems, errors.New("data.members is given, and data.group is null"))
		}
	} else {
		r.name("processor", &d.Processor)
		r.members(&d.Members)
	}
	r.required("sequence", &d.Sequence)
	r.required("desiredReplicas", &d.DesiredReplicas)
	r.nullable("previousReplicas", &d.PreviousReplicas)
	r.required("active", &d.Active)
	r.required("direction", &d.Direction)
	r.required("metricValue", &d.MetricValue)
	r.nullable("lag", &d.Lag)
	r.nullable("changeAgeSeconds", &d.ChangeAgeSeconds)
	r.nullable("partitionCount", &d.PartitionCount)
	r.nullable("partitionsWithLag", &d.PartitionsWithLag)
	r.required("complete", &d.Complete)
	r.required("status", &d.Status)
	r.required("reasons", &d.Reasons)
	r.required("target", &d.Target)
	if r.has("findings") {
		r.required("findings", &d.Findings)
	}
	if r.has("throughput") {
		r.required("throughput", &d.Throughput)
	}
	return d, r.err()
}

func object(raw []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("no JSON object: %w", err)
	}
	if fields == nil {
		return nil, errors.New("no JSON object: null")
	}
	return fields, nil
}

// fieldReader takes fields out of an object by their exact names, which
// encoding/json alone would match in any case, and collects what is wrong.
type fieldReader struct {
	fields   map[string]json.RawMessage
	prefix   string // of the names in errors
	missing  []string
	problems []error
}

func (r *fieldReader) has(name string) bool {
	_, ok := r.fields[name]
	return ok
}

// required reads a field that must be there and not null.
func (r *fieldReader) required(name string, into any) {
	if string(r.fields[name]) == "null" {
		r.problems = append(r.problems, fmt.Errorf("%s%s must not be null", r.prefix, name))
		return
	}
	r.nullable(name, into)
}

// nullable reads a field that must be there.
func (r *fieldReader) nullable(name string, into any) {
	raw, ok := r.fields[name]
	if !ok {
		r.missing = append(r.missing, r.prefix+name)
		return
	}
	if err := json.Unmarshal(raw, into); err != nil {
		r.problems = append(r.problems, fmt.Errorf("%s%s: %s", r.prefix, name, wanted(err, into)))
	}
}

// name reads the name of a processor or group, which is null in the event of the other.
func (r *fieldReader) name(field string, into *string) {
	r.nullable(field, into)
	if string(r.fields[field]) == `""` {
		r.problems = append(r.problems, fmt.Errorf("%s%s must be null or not empty", r.prefix, field))
	}
}

// members reads the processors of a group.
func (r *fieldReader) members(into *[]Member) {
	var list []json.RawMessage
	r.required("members", &list)
	for i, raw := range list {
		at := fmt.Sprintf("%smembers[%d]", r.prefix, i)
		fields, err := object(raw)
		if err != nil {
			r.problems = append(r.problems, fmt.Errorf("%s: %w", at, err))
			continue
		}
		var m Member
		of := fieldReader{fields: fields, prefix: at + "."}
		of.required("processor", &m.Processor)
		of.nullable("desiredReplicas", &m.DesiredReplicas)
		of.nullable("lag", &m.Lag)
		of.required("status", &m.Status)
		if err := of.err(); err != nil {
			r.problems = append(r.problems, err)
		}
		*into = append(*into, m)
	}
}

// wanted says what a field should have been, without repeating its value,
// which may be as long as the message.
func wanted(err error, into any) string {
	var wrongType *json.UnmarshalTypeError
	switch _, isTime := into.(*time.Time); {
	case isTime:
		return "must be an RFC 3339 time"
	case errors.As(err, &wrongType):
		return fmt.Sprintf("must be of type %s", wrongType.Type)
	default:
		return err.Error()
	}
}

func (r *fieldReader) err() error {
	problems := r.problems
	if len(r.missing) > 0 {
		problems = append([]error{fmt.Errorf("missing %s", strings.Join(r.missing, ", "))}, problems...)
	}
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Error()
	}
	return errors.New(strings.Join(texts, "; ")) // one line: it becomes a dead-letter reason
}
