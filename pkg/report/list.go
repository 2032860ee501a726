package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
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

// ErrUnknownName is the error of a name that no processor and no group has. Its text says where to
// look.
var ErrUnknownName = errors.New("the processors file says which there are")

// UnknownName returns an error for a name that no processor and no group has. It wraps
// ErrUnknownName.
func UnknownName(name string) error {
	return fmt.Errorf("no processor or group is named %q: %w", name, ErrUnknownName)
}

// WriteObject writes a struct as a line of JSON. A slice is written element by element, so that the
// JSON of thousands of processors is never in memory at once.
func WriteObject(w io.Writer, object any) (err error) {
	write := func(before string, value any) {
		encoded, failed := json.Marshal(value)
		if err = cmp.Or(err, failed); err == nil {
			_, err = io.WriteString(w, before+string(encoded))
		}
	}
	of, before := reflect.ValueOf(object), "{"
	for _, f := range reflect.VisibleFields(of.Type()) {
		all := of.FieldByIndex(f.Index)
		if f.Anonymous {
			continue // its fields follow
		}
		before += strconv.Quote(f.Tag.Get("json")) + ":"
		if all.Kind() != reflect.Slice || all.Len() == 0 {
			write(before, all.Interface())
			before = ","
			continue
		}
		before += "["
		for n := range all.Len() {
			write(before, all.Index(n).Interface())
			before = ","
		}
		before = "],"
	}
	if err == nil {
		_, err = io.WriteString(w, strings.TrimSuffix(before, ",")+"}\n")
	}
	return err
}

// History is the record of a processor, as the API answers it and `feedscale history` prints it.
type History struct {
	Processor string         `json:"processor"`
	Samples   []state.Sample `json:"samples"` // oldest first
}

// Thin returns the last sample of each step of time, and all that changed the replicas. A step of 0
// keeps all samples.
func Thin(samples []state.Sample, step time.Duration) (kept []state.Sample) {
	for i, s := range samples {
		last := i+1 == len(samples) || step == 0 || !samples[i+1].Time.Truncate(step).Equal(s.Time.Truncate(step))
		if last || s.Changed() {
			kept = append(kept, s)
		}
	}
	return kept
}
