package cosmosfake

import (
	"encoding/json"
	"net/http"
)

// outcome is the result of one operation of a transaction.
type outcome struct {
	status   int
	document *document // nil after a delete
}

func (o outcome) size() int {
	if o.document == nil {
		return 0
	}
	return len(o.document.open)
}

func (t *transaction) create(c *content) (outcome, error) {
	if _, exists := t.get(documentName{c.key.text, c.id}); exists {
		return outcome{}, conflict()
	}
	return t.put(http.StatusCreated, c, nil)
}

func (t *transaction) upsert(c *content, ifMatch string) (outcome, error) {
	old, exists := t.get(documentName{c.key.text, c.id})
	switch {
	case !exists:
		return t.put(http.StatusCreated, c, nil)
	case !matches(ifMatch, old.etag):
		return outcome{}, preconditionFailed()
	}
	return t.put(http.StatusOK, c, old)
}

// existing finds a document that an operation presupposes.
func (t *transaction) existing(name documentName, ifMatch string) (*document, error) {
	d, ok := t.get(name)
	if !ok {
		if d, ok = t.partition.findByRID(name); !ok {
			return nil, notFound()
		}
		if d, ok = t.get(d.name); !ok {
			return nil, notFound()
		}
	}
	if !matches(ifMatch, d.etag) {
		return nil, preconditionFailed()
	}
	return d, nil
}

func (t *transaction) replace(name documentName, c *content, ifMatch string) (outcome, error) {
	old, err := t.existing(name, ifMatch)
	if err != nil {
		return outcome{}, err
	}
	if c.id != old.name.id {
		return outcome{}, badRequest("The id of a document cannot be changed.")
	}
	return t.put(http.StatusOK, c, old)
}

func (t *transaction) remove(name documentName, ifMatch string) (outcome, error) {
	old, err := t.existing(name, ifMatch)
	if err != nil {
		return outcome{}, err
	}
	t.delete(old, false)
	return outcome{status: http.StatusNoContent}, nil
}

func (t *transaction) patch(name documentName, p *patch, ifMatch string) (outcome, error) {
	old, err := t.existing(name, ifMatch)
	if err != nil {
		return outcome{}, err
	}
	if p.condition != nil && !p.condition.Matches(&row{document: old}) {
		return outcome{}, preconditionFailed()
	}
	value := decodeObject(old.json())
	if err := p.apply(value); err != nil {
		return outcome{}, err
	}
	body, err := json.Marshal(value)
	if err != nil {
		return outcome{}, badRequest("The patched document has no JSON form.")
	}
	c, err := t.partition.container.key.parseContent(body)
	if err != nil {
		return outcome{}, err
	}
	if c.id != old.name.id || c.key.text != old.name.key {
		return outcome{}, badRequest("A patch cannot change the id or the partition key of a document.")
	}
	return t.put(http.StatusOK, c, old)
}

// find looks a document up by its id, or by its RID where the link was made of those. The caller
// holds mu.
func (p *partition) find(name documentName) (*document, bool) {
	if d, ok := p.byName[name]; ok {
		return d, true
	}
	return p.findByRID(name)
}

func (p *partition) findByRID(name documentName) (*document, bool) {
	serial, ok := serialOf(name.id)
	if !ok {
		return nil, false
	}
	for d := range p.creation.from(serial) {
		return d, d.rid == name.id && d.name.key == name.key
	}
	return nil, false
}
