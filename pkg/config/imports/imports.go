package imports

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
)

// File is one of the files to import.
type File struct {
	Name string // as the user gave it; the folder of a function.json is the name of its function
	Text []byte
}

// Result is what comes of an import.
type Result struct {
	Processors []byte    // a processors file
	Remarks    []Remark  // what was not carried over as it was, in the order of the files
	Settings   []Setting // what the connections of Processors still need, by name
}

// Remark says of one place of a file what does not stand in the processors file, or otherwise than
// might be expected, and what to do.
type Remark struct {
	File  string
	Line  int    // from 1
	Field string // "spec.pollingInterval"
	Text  string
}

// String returns the remark in one line: "file:line: field: why; what to do".
func (r Remark) String() string {
	return r.mistake().String()
}

func (r Remark) mistake() config.Mistake {
	return config.Mistake{File: r.File, Line: r.Line, Field: r.Field, Text: r.Text}
}

// Setting is a setting to make.
type Setting struct {
	Name  string
	Value string // "" where it is a secret or not known
	What  string // says what the value is
}

// String returns the setting in one line.
func (s Setting) String() string {
	if s.Value == "" {
		return s.Name + ": " + s.What
	}
	return s.Name + "=" + s.Value + ": " + s.What
}

// Convert makes a processors file from files. lookup finds the settings that are there already; they
// stand for themselves in %NAME% and are not listed as missing. The error is a config.Mistakes with
// everything that cannot be read.
func Convert(files []File, lookup func(string) (string, bool)) (Result, error) {
	c := converter{lookup: lookup, authentications: map[objectKey]authentication{}, apps: map[string]*app{}, names: map[string]bool{}}
	for _, f := range files {
		c.read(f)
	}
	if len(c.mistakes) > 0 {
		return Result{}, c.mistakes
	}
	c.convert()
	if len(c.processors) == 0 {
		return Result{}, c.nothing(files)
	}
	text, err := c.render()
	if err != nil {
		return Result{}, err
	}
	// The entries were checked one by one, so that what is found now is a fault of this package.
	if _, err := config.Load("the processors file that was made", text, everySetting); err != nil {
		return Result{}, err
	}
	return Result{Processors: text, Remarks: c.sortedRemarks(files), Settings: c.missing()}, nil
}

// converter is an import under way.
type converter struct {
	lookup   func(string) (string, bool)
	mistakes config.Mistakes
	remarks  []Remark

	scaledObjects   []value
	authentications map[objectKey]authentication
	triggers        []functionTrigger
	apps            map[string]*app // by folder

	groups     []*entry
	processors []*entry
	names      map[string]bool // of both
	leases     map[leases]*entry
	targets    map[string]*entry
	accounts   []*account
}

func (c *converter) mistake(at value, text string) {
	c.mistakes = append(c.mistakes, config.Mistake{File: at.file, Line: at.line, Field: at.path, Text: text})
}

func (c *converter) remark(at value, format string, args ...any) {
	r := Remark{at.file, at.line, at.path, oneLine(fmt.Sprintf(format, args...))}
	if !slices.Contains(c.remarks, r) { // the members of a group share fields
		c.remarks = append(c.remarks, r)
	}
}

// oneLine keeps what a file says from looking like lines of its own.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// convert makes the entries of what was read.
func (c *converter) convert() {
	c.leases, c.targets = map[leases]*entry{}, map[string]*entry{}
	for _, object := range c.scaledObjects {
		c.scaledObject(object)
	}
	c.functions()
}

// nothing is the mistake of files that are fine and hold no processor: the remarks say why.
func (c *converter) nothing(files []File) error {
	var mistakes config.Mistakes
	for _, r := range c.sortedRemarks(files) {
		mistakes = append(mistakes, r.mistake())
	}
	return append(mistakes, config.Mistake{Text: "there is nothing to import: no file has a ScaledObject with a trigger for Cosmos DB, or a function with a cosmosDBTrigger, that could be carried over"})
}

// sortedRemarks returns the remarks in the order of the files and their lines.
func (c *converter) sortedRemarks(files []File) []Remark {
	order := map[string]int{}
	for i, f := range slices.Backward(files) {
		order[f.Name] = i
	}
	slices.SortStableFunc(c.remarks, func(a, b Remark) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), strings.Compare(a.Field, b.Field))
	})
	return c.remarks
}

// everySetting is a lookup in which every connection is there, each to an account of its own.
func everySetting(name string) (string, bool) {
	if strings.HasSuffix(name, "tokenScope") {
		return "", false // a key signs in
	}
	return fmt.Sprintf("AccountEndpoint=https://a%x.documents.azure.com/;AccountKey=AAAA", name), true
}

// refused returns what config finds wrong with a processors file, nil where it is fine.
func refused(text []byte) config.Mistakes {
	_, err := config.Load("", text, everySetting)
	mistakes, _ := errors.AsType[config.Mistakes](err)
	return mistakes
}
