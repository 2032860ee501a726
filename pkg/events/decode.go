package events

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxBody is the greatest length of an encoded scale event, in bytes. A state table has room for more; it is
// the default limit of a message in the premium tier of Service Bus
// (https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas).
const MaxBody = 1 << 20

// Decode reads an encoded scale event of at most MaxBody bytes. It ignores CloudEvents extensions and fields
// that it does not know. The error names what is missing, of another type or contradictory; a consumer may
// give it as the reason of a dead letter. Do not log it: it may repeat parts of the event. Body returns the
// bytes again.
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
	var env struct {
		envelope
		Data json.RawMessage `json:"data"`
	}
	err := fields{needed: "specversion type id source subject time datacontenttype data"}.read(body, "", &env)
	switch {
	case err != nil && (env.SpecVersion == "" || env.Type == ""):
		return ScaleEvent{}, err
	case env.SpecVersion != SpecVersion: // which explains every field that is missing, as another type does
		return ScaleEvent{}, fmt.Errorf("specversion is %q, this consumer reads %q", env.SpecVersion, SpecVersion)
	case env.Type != Type:
		return ScaleEvent{}, fmt.Errorf("type is %q, this consumer reads %q", env.Type, Type)
	case err != nil:
		return ScaleEvent{}, err
	}
	data, err := decodeData(env.Data)
	if err != nil {
		return ScaleEvent{}, err
	}
	e := ScaleEvent{Source: env.Source, Time: env.Time.UTC(), Data: data}
	err = e.validate()
	switch {
	case err != nil:
		return ScaleEvent{}, err
	case env.DataContentType != dataContentType:
		return ScaleEvent{}, fmt.Errorf("datacontenttype is %q, it must be %q", env.DataContentType, dataContentType)
	case env.Subject != e.Subject():
		return ScaleEvent{}, fmt.Errorf("subject is %q and data.processor or data.group is %q, they must be the same", env.Subject, e.Subject())
	case env.ID != e.ID():
		return ScaleEvent{}, fmt.Errorf("id is %q, subject, epoch and sequence make it %q", env.ID, e.ID())
	}
	return e, nil
}

func decodeData(raw json.RawMessage) (Data, error) {
	given, err := object(raw, "data.")
	if err != nil {
		return Data{}, err
	}
	known := fields{
		needed:   "sequence desiredReplicas active direction metricValue complete status reasons target",
		nullable: "previousReplicas lag changeAgeSeconds partitionCount partitionsWithLag",
		optional: "findings throughput",
	}
	group := string(given["group"])
	if group != "" || given["epoch"] != nil {
		known.needed, known.nullable = known.needed+" epoch", known.nullable+" group"
	} // else an event of a release that had neither, which may have waited in a queue for long
	if group == "" || group == "null" || group == `""` {
		known.needed, known.optional = known.needed+" processor", known.optional+" members"
	} else {
		known.needed, known.nullable = known.needed+" members", known.nullable+" processor"
	}
	var d struct {
		encodedData
		Members []json.RawMessage `json:"members"`
	}
	err = known.read(raw, "data.", &d)
	switch {
	case err != nil:
		return Data{}, err
	case d.Processor != nil && *d.Processor == "", d.Group != nil && *d.Group == "":
		return Data{}, errors.New("data.processor and data.group must be null or not empty")
	}
	data := d.Data
	data.Processor, data.Group = *cmp.Or(d.Processor, new("")), *cmp.Or(d.Group, new(""))
	if d.Members != nil {
		data.Members = make([]Member, len(d.Members))
	}
	for i, raw := range d.Members {
		member := fields{needed: "processor status", nullable: "desiredReplicas lag"}
		if err := member.read(raw, fmt.Sprintf("data.members[%d].", i), &data.Members[i]); err != nil {
			return Data{}, err
		}
	}
	return data, nil
}

// object reads an object. at is its place with a dot at the end, "" for the event itself.
func object(raw []byte, at string) (map[string]json.RawMessage, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		return nil, errors.New(strings.TrimPrefix(strings.TrimSuffix(at, ".")+": no JSON object", ": "))
	}
	return given, nil
}

// fields are the names of an object's fields, separated by spaces.
type fields struct {
	needed   string // are there, and not null
	nullable string // are there
	optional string // are not null where they are there
}

// read reads an object into a struct. It finds fields by their exact names, which encoding/json alone would
// match in any case, and ignores others. The error is one line, since it becomes the reason of a dead letter,
// and repeats no value, which may be as long as the message.
func (f fields) read(raw []byte, at string, into any) error {
	given, err := object(raw, at)
	if err != nil {
		return err
	}
	optional, nullable := strings.Fields(f.optional), strings.Fields(f.nullable)
	known := map[string]json.RawMessage{}
	var missing, problems []string
	for _, name := range strings.Fields(f.needed + " " + f.nullable + " " + f.optional) {
		value, ok := given[name]
		switch {
		case !ok && !slices.Contains(optional, name):
			missing = append(missing, at+name)
		case string(value) == "null" && !slices.Contains(nullable, name):
			problems = append(problems, at+name+" must not be null")
		case ok:
			known[name] = value
		}
	}
	if len(missing) > 0 {
		problems = append(problems, "missing "+strings.Join(missing, ", "))
	}
	text, err := json.Marshal(known)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		path := strings.Split(wrong.Field, ".") // with the names of embedded structs
		field := path[max(0, slices.IndexFunc(path, func(step string) bool { return known[step] != nil }))]
		problems = append(problems, fmt.Sprintf("%s%s: must be of type %s", at, field, wrong.Type))
	} else if err != nil {
		problems = append(problems, at+"time: must be an RFC 3339 time") // the one field that reads itself
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}
