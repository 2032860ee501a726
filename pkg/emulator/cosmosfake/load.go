package cosmosfake

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Upsert writes a document without a request: for load generators, which would otherwise spend
// their time on HTTP. It has the meaning of a client's upsert, but no part in the container's
// throughput. doc is anything with a JSON form.
func (s *Server) Upsert(db, coll string, doc any) error {
	return s.Batch(db, coll, Put(doc))
}

// Delete deletes a document without a request. key holds the components of its partition key: nil,
// bool, float64 or string. It is an error if there is no such document.
func (s *Server) Delete(db, coll, id string, key ...any) error {
	return s.Batch(db, coll, Remove(id, key...))
}

// Operation is one write of Batch.
type Operation struct {
	doc any
	id  string
	key []any
}

// Put upserts a document.
func Put(doc any) Operation { return Operation{doc: doc} }

// Remove deletes a document; it must exist.
func Remove(id string, key ...any) Operation { return Operation{id: id, key: key} }

// Batch writes several documents of one partition key range in one transaction, so that they share
// an LSN, and either all of them or none are written.
func (s *Server) Batch(db, coll string, operations ...Operation) error {
	c, err := s.container(db, coll)
	if err != nil {
		return err
	}
	steps := make([]func(*transaction) error, len(operations))
	positions := make([]string, len(operations))
	for i, o := range operations {
		if steps[i], positions[i], err = c.prepare(o); err != nil {
			return fmt.Errorf("writing to the stand-in's container %s/%s: %w", db, coll, err)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	_, err = c.write(positions[0], s.now(), func(t *transaction) error {
		for i, step := range steps {
			if !t.partition.span.contains(positions[i]) {
				return errors.New("the documents of a batch belong to one partition key range")
			}
			if err := step(t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing to the stand-in's container %s/%s: %w", db, coll, err)
	}
	return nil
}

func (c *container) prepare(o Operation) (step func(*transaction) error, position string, err error) {
	if o.doc == nil {
		key := c.key.key(o.key)
		if !c.key.complete(key) {
			return nil, "", fmt.Errorf("deleting document %s: its partition key has %d components", o.id, len(c.key.paths))
		}
		return func(t *transaction) error {
			_, err := t.remove(documentName{key.text, o.id}, "")
			return err
		}, key.epk, nil
	}
	body, err := json.Marshal(o.doc)
	if err != nil {
		return nil, "", fmt.Errorf("a document has no JSON form: %w", err)
	}
	content, err := c.key.parseContent(body)
	if err != nil {
		return nil, "", err
	}
	return func(t *transaction) error {
		_, err := t.upsert(content, "")
		return err
	}, content.key.epk, nil
}
