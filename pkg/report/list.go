package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"time"
)

// List is everything there is, as the API answers it and `feedscale status` prints it.
type List struct {
	Time       time.Time     `json:"time"` // of the answer
	Processors []Stored      `json:"processors"`
	Groups     []StoredGroup `json:"groups"`
	Causes     []Cause       `json:"causes"` // what they have in common; nil from a release that has none
}

// NewList returns a List with what its entries have in common.
func NewList(now time.Time, processors []Stored, groups []StoredGroup) List {
	l := List{Time: now, Processors: processors, Groups: groups}
	l.Causes = Causes(l)
	return l
}

// Field is a field of a JSON object.
type Field struct {
	Name  string
	Value any
}

// Fields returns the fields of the list's JSON.
func (l List) Fields() []Field {
	return []Field{{"time", l.Time}, {"processors", l.Processors}, {"groups", l.Groups}, {"causes", l.Causes}}
}

// WriteObject writes a line of JSON, in which < and > are escaped for a browser or, for people, are not. A slice is
// written an element at a time, so that the text of thousands of processors is never in memory.
func WriteObject(w io.Writer, fields []Field, escaped bool) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(escaped)
	write := func(before string, value any) error {
		text.Reset()
		text.WriteString(before)
		if err := encoder.Encode(value); err != nil {
			return err
		}
		_, err := w.Write(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
		return err
	}
	before := "{"
	for _, f := range fields {
		before += fmt.Sprintf("%q:", f.Name)
		of := reflect.ValueOf(f.Value)
		if of.Kind() != reflect.Slice || of.Len() == 0 {
			if err := write(before, f.Value); err != nil {
				return err
			}
			before = ","
			continue
		}
		before += "["
		for i := range of.Len() {
			if err := write(before, of.Index(i).Interface()); err != nil {
				return err
			}
			before = ","
		}
		before = "],"
	}
	_, err := io.WriteString(w, before[:len(before)-1]+"}\n")
	return err
}
