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
	var env envelope
	err := read(body, "", &env)
	d := env.Data
	switch {
	case err != nil && (env.SpecVersion == "" || env.Type == ""):
		return ScaleEvent{}, err
	case env.SpecVersion != SpecVersion: // which explains every field that is missing, as another type does
		return ScaleEvent{}, fmt.Errorf("specversion is %q, this consumer reads %q", env.SpecVersion, SpecVersion)
	case env.Type != Type:
		return ScaleEvent{}, fmt.Errorf("type is %q, this consumer reads %q", env.Type, Type)
	case err != nil:
		return ScaleEvent{}, err
	case env.Source == "":
		return ScaleEvent{}, errors.New("source is empty")
	case d.Processor != nil && *d.Processor == "", d.Group != nil && *d.Group == "":
		return ScaleEvent{}, errors.New("data.processor and data.group must be null or not empty")
	case d.Processor == nil && d.Group == nil:
		return ScaleEvent{}, errors.New("data.processor must not be null, or data.group")
	case d.Group != nil && d.Members == nil:
		return ScaleEvent{}, errors.New("missing data.members")
	}
	e := ScaleEvent{Time: env.Time.UTC(), Data: d.Data}
	e.Processor, e.Group = *cmp.Or(d.Processor, new("")), *cmp.Or(d.Group, new(""))
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

// read reads an object into a struct, as its tags have the fields: those without omitempty must be there, by their
// exact names, and only pointers may be null. at is the place of the object with a dot at its end, "" for the event
// itself. The error is one line, since it becomes the reason of a dead letter, and repeats no value, which may be
// as long as the message.
func read(raw []byte, at string, into any) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		return errors.New(strings.TrimPrefix(strings.TrimSuffix(at, ".")+": no JSON object", ": "))
	}
	if _, ok := into.(*encodedData); ok && given["group"] == nil && given["epoch"] == nil { // of a release that had neither: it may have waited in a queue for long
		given["group"], given["epoch"] = []byte("null"), []byte("0")
	}
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
			if err := readField(value, at+name, s.FieldByIndex(field.Index).Addr().Interface()); err != nil {
				problems = append(problems, err.Error())
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

// jsonTypes are what JSON has for a type of Go, in words.
var jsonTypes = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number", "string": "a string",
	"time.Time": "a time as RFC 3339 has it", "map[string]string": "an object with strings",
}

// readField reads what a field at a place has.
func readField(value []byte, at string, into any) (err error) {
	switch into := into.(type) {
	case *encodedData:
		return read(value, at+".", into)
	case *[]Member:
		var members []json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return errors.New(at + ": must be a list")
		}
		*into = make([]Member, len(members))
		for i, raw := range members {
			err = cmp.Or(err, read(raw, fmt.Sprintf("%s[%d].", at, i), &(*into)[i]))
		}
		return err
	}
	if json.Unmarshal(value, into) != nil {
		return fmt.Errorf("%s: must be %s", at, cmp.Or(jsonTypes[strings.TrimLeft(reflect.TypeOf(into).String(), "*")], "a list of objects"))
	}
	return nil
}
