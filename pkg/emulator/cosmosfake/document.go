package cosmosfake

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/epk"
)

// document is one version of a document. It never changes, so that it can be read without a lock.
type document struct {
	name documentName
	epk  string
	// order of creation within the container; it stays through versions, splits and merges
	serial  uint64
	rid     string
	etag    string
	lsn     uint64
	written int64  // seconds since 1970
	first   bool   // the version that created the document
	ttl     *int64 // the document's own, in seconds
	expires int64  // seconds since 1970; 0: never
	unique  []string
	open    []byte // the JSON form without the closing brace
}

// documentName identifies a document within its container: ids are unique within a logical
// partition only.
type documentName struct{ key, id string }

// json is the document as clients read it.
func (d *document) json() []byte { return append(bytes.Clone(d.open), '}') }

// appendChange writes the document as the incremental feed shows it.
func (d *document) appendChange(b []byte) []byte {
	b = append(append(b, d.open...), `,"_lsn":`...)
	return append(strconv.AppendUint(b, d.lsn, 10), '}')
}

// content is a document as a client sends it, checked and taken apart.
type content struct {
	id     string
	key    partitionKey
	ttl    *int64
	fields []field // without those that the service sets itself
}

type field struct {
	name  string
	value json.RawMessage
}

// parseFields reads a JSON object and keeps the order of its properties.
func parseFields(body []byte) ([]field, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, badRequest("The request body is not a JSON object.")
	}
	var fields []field
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, badRequest("The request body is not valid JSON.")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, badRequest("The request body is not valid JSON.")
		}
		fields = append(fields, field{name, value})
	}
	if _, err := d.Token(); err != nil || d.More() {
		return nil, badRequest("The request body is not valid JSON.")
	}
	return fields, nil
}

// parseContent checks a document and finds its id, its partition key and its time to live.
func (k keyDefinition) parseContent(body []byte) (*content, error) {
	fields, err := parseFields(body)
	if err != nil {
		return nil, err
	}
	c := &content{}
	for _, f := range fields {
		switch f.name {
		case "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn":
			continue
		case "id":
			if err := json.Unmarshal(f.value, &c.id); err != nil {
				return nil, badRequest("The id of a document is a string.")
			}
		case "ttl":
			var ttl int64
			if err := json.Unmarshal(f.value, &ttl); err != nil || ttl == 0 || ttl < -1 {
				return nil, badRequest("The ttl of a document is -1 or a positive number of seconds.")
			}
			c.ttl = &ttl
		}
		c.fields = append(c.fields, f)
	}
	if err := checkID(c.id); err != nil {
		return nil, err
	}
	var components []any
	for _, steps := range k.steps {
		components = append(components, extract(c.fields, steps))
	}
	c.key = k.key(components)
	return c, nil
}

// extract returns the scalar at a path, or undefined.
func extract(fields []field, steps []string) any {
	var found any = epk.Undefined{}
	for _, f := range fields {
		if f.name != steps[0] {
			continue
		}
		var v any
		if err := json.Unmarshal(f.value, &v); err != nil {
			return epk.Undefined{}
		}
		found = v
	}
	for _, step := range steps[1:] {
		object, ok := found.(map[string]any)
		if !ok {
			return epk.Undefined{}
		}
		if found, ok = object[step]; !ok {
			return epk.Undefined{}
		}
	}
	switch found.(type) {
	case map[string]any, []any:
		return epk.Undefined{}
	}
	return found
}

// render writes a version of a document: what the client sent, then what the service adds.
func (d *document) render(fields []field, containerSelf string) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, f := range fields {
		name, _ := json.Marshal(f.name) // a string always has a JSON form
		b.Write(name)
		b.WriteByte(':')
		if json.Compact(&b, f.value) != nil {
			b.WriteString("null") // cannot happen: the value was decoded
		}
		b.WriteByte(',')
	}
	etag, _ := json.Marshal(d.etag)
	b.WriteString(`"_rid":"` + d.rid + `","_self":"` + containerSelf + "docs/" + d.rid + `/","_etag":`)
	b.Write(etag)
	b.WriteString(`,"_attachments":"attachments/","_ts":` + strconv.FormatInt(d.written, 10))
	d.open = bytes.Clone(b.Bytes())
}

// row lets a query look at a document. The document is decoded when more than its id is asked for.
type row struct {
	*document
	decoded map[string]any
}

func (r *row) Field(name string) (any, bool) {
	if name == "id" {
		return r.name.id, true
	}
	v, ok := r.decode()[name]
	return v, ok
}

func (r *row) Value() any { return r.decode() }

func (r *row) decode() map[string]any {
	if r.decoded == nil {
		r.decoded = decodeObject(r.json())
	}
	return r.decoded
}

// decodeObject decodes what is known to be a JSON object, numbers as they are written.
func decodeObject(body []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v map[string]any
	if d.Decode(&v) != nil {
		return map[string]any{}
	}
	return v
}
