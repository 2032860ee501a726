package events

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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
	given, err := object(body, "")
	if err == nil {
		err = given.read("", &env)
	}
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

func decodeData(raw []byte) (Data, error) {
	given, err := object(raw, "data.")
	if err != nil {
		return Data{}, err
	}
	if given["group"] == nil && given["epoch"] == nil { // of a release that had neither: it may have waited in a queue for long
		given["group"], given["epoch"] = []byte("null"), []byte("0")
	}
	var d struct {
		encodedData
		Members []json.RawMessage `json:"members,omitempty"`
	}
	err = given.read("data.", &d)
	switch {
	case err != nil:
		return Data{}, err
	case d.Processor != nil && *d.Processor == "", d.Group != nil && *d.Group == "":
		return Data{}, errors.New("data.processor and data.group must be null or not empty")
	case d.Processor == nil && d.Group == nil:
		return Data{}, errors.New("data.processor must not be null, or data.group")
	case d.Group != nil && d.Members == nil:
		return Data{}, errors.New("missing data.members")
	}
	data := d.Data
	data.Processor, data.Group = *cmp.Or(d.Processor, new("")), *cmp.Or(d.Group, new(""))
	if d.Members != nil {
		data.Members = make([]Member, len(d.Members))
	}
	for i, raw := range d.Members {
		at := fmt.Sprintf("data.members[%d].", i)
		if given, err = object(raw, at); err == nil {
			err = given.read(at, &data.Members[i])
		}
		if err != nil {
			return Data{}, err
		}
	}
	return data, nil
}

// fields are the fields of an object by their exact names, which encoding/json alone would match in any case.
type fields map[string]json.RawMessage

// object reads an object. at is its place with a dot at the end, "" for the event itself.
func object(raw []byte, at string) (given fields, err error) {
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		return nil, errors.New(strings.TrimPrefix(strings.TrimSuffix(at, ".")+": no JSON object", ": "))
	}
	return given, nil
}

// read puts the fields into a struct, as their tags have them: those without omitempty must be there, and only
// pointers may be null. The error is one line, since it becomes the reason of a dead letter, and repeats no
// value, which may be as long as the message.
func (given fields) read(at string, into any) error {
	var missing, problems []string
	s := reflect.ValueOf(into).Elem()
	for _, field := range reflect.VisibleFields(s.Type()) {
		name, optional, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, ok := given[name]
		switch {
		case name == "": // an embedded struct, whose fields come by themselves
		case !ok && optional == "":
			missing = append(missing, at+name)
		case string(value) == "null" && field.Type.Kind() != reflect.Pointer:
			problems = append(problems, at+name+" must not be null")
		case ok:
			err := json.Unmarshal(value, s.FieldByIndex(field.Index).Addr().Interface())
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				problems = append(problems, fmt.Sprintf("%s%s: must be of type %s", at, name, wrong.Type))
			} else if err != nil {
				problems = append(problems, at+name+": must be an RFC 3339 time") // the one field that reads itself
			}
		}
	}
	if len(missing) > 0 {
		problems = append(problems, "missing "+strings.Join(missing, ", "))
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}
