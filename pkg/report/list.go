package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"time"
)

// List is all processors and groups, as the API answers it and `feedscale status` prints it.
type List struct {
	Time       time.Time     `json:"time"` // of the answer
	Processors []Stored      `json:"processors"`
	Groups     []StoredGroup `json:"groups"`
	// failures that they share; nil in an answer of a release without causes
	Causes []Cause `json:"causes"`
}

// NewList returns a List with the causes of its entries.
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

// Fields returns the top-level fields of the list's JSON, in order.
func (l List) Fields() []Field {
	return []Field{{"time", l.Time}, {"processors", l.Processors}, {"groups", l.Groups}, {"causes", l.Causes}}
}

// WriteObject writes an object as a line of JSON. If escaped is set, < and > are escaped for a
// browser. A slice is written element by element, so that the JSON of thousands of processors is
// never in memory at once.
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
