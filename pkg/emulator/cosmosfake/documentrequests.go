package cosmosfake

import (
	"net/http"
	"strconv"
)

// headerKey reads the partition key that every request for one document carries.
func (c *call) headerKey() (partitionKey, error) {
	header := c.Header.Get("x-ms-documentdb-partitionkey")
	if header == "" {
		return partitionKey{}, badRequest("PartitionKey value must be supplied for this operation.")
	}
	key, err := c.container.key.parse(header)
	if err == nil && !c.container.key.complete(key) {
		err = badRequest("The partition key supplied for this operation has fewer components than defined in the container.")
	}
	return key, err
}

// checkKey refuses a document that belongs to another logical partition than the request says.
func checkKey(given partitionKey, content *content) error {
	if given.text != content.key.text {
		return &fault{status: http.StatusBadRequest, substatus: substatusKeyMismatch, message: "PartitionKey extracted from document doesn't match the one specified in the header."}
	}
	return nil
}

// writeDocument runs one write as a transaction of its own.
func (c *call) writeDocument(key partitionKey, operation func(*transaction) (outcome, error)) (*reply, error) {
	if err := c.admit(c.container.routing.Load().owner(key.epk)); err != nil {
		return nil, err
	}
	var done outcome
	var lsn uint64
	p, err := c.container.write(key.epk, c.now, func(t *transaction) (err error) {
		done, err = operation(t)
		lsn = t.lsn
		return err
	})
	charge := writeCharge(done.size())
	c.spend(p, charge)
	if err != nil {
		return nil, err
	}
	r := &reply{status: done.status, charge: charge}
	c.progress(r, p, lsn)
	r.set("x-ms-item-lsn", strconv.FormatUint(lsn, 10))
	r.set("x-ms-cosmos-item-llsn", strconv.FormatUint(lsn, 10))
	if done.document != nil {
		r.set("etag", done.document.etag)
		if !c.minimal() {
			r.body = done.document.json()
		}
	}
	return r, nil
}

func (c *call) createDocument() (*reply, error) {
	content, err := c.container.key.parseContent(c.body)
	if err != nil {
		return nil, err
	}
	key, err := c.headerKey()
	if err != nil {
		return nil, err
	}
	if err := checkKey(key, content); err != nil {
		return nil, err
	}
	return c.writeDocument(key, func(t *transaction) (outcome, error) {
		if c.Kind == CreateDocument {
			return t.create(content)
		}
		return t.upsert(content, c.Header.Get("If-Match"))
	})
}

func (c *call) replaceDocument() (*reply, error) {
	content, err := c.container.key.parseContent(c.body)
	if err != nil {
		return nil, err
	}
	key, err := c.headerKey()
	if err != nil {
		return nil, err
	}
	if err := checkKey(key, content); err != nil {
		return nil, err
	}
	return c.writeDocument(key, func(t *transaction) (outcome, error) {
		return t.replace(documentName{key.text, c.Document}, content, c.Header.Get("If-Match"))
	})
}

func (c *call) patchDocument() (*reply, error) {
	patch, err := parsePatch(c.body)
	if err != nil {
		return nil, err
	}
	key, err := c.headerKey()
	if err != nil {
		return nil, err
	}
	return c.writeDocument(key, func(t *transaction) (outcome, error) {
		return t.patch(documentName{key.text, c.Document}, patch, c.Header.Get("If-Match"))
	})
}

func (c *call) deleteDocument() (*reply, error) {
	key, err := c.headerKey()
	if err != nil {
		return nil, err
	}
	return c.writeDocument(key, func(t *transaction) (outcome, error) {
		return t.remove(documentName{key.text, c.Document}, c.Header.Get("If-Match"))
	})
}

func (c *call) readDocument() (*reply, error) {
	key, err := c.headerKey()
	if err != nil {
		return nil, err
	}
	if err := c.admit(c.container.routing.Load().owner(key.epk)); err != nil {
		return nil, err
	}
	var d *document
	var ok bool
	var lsn uint64
	p := c.container.read(key.epk, c.now, func(p *partition) {
		d, ok = p.find(documentName{key.text, c.Document})
		lsn = p.lsn
	})
	if err := c.checkSession(p, lsn); err != nil {
		return nil, err
	}
	if !ok {
		return nil, notFound()
	}
	r := &reply{status: http.StatusOK, body: d.json()}
	if condition := c.Header.Get("If-None-Match"); condition == "*" || condition == d.etag {
		r = &reply{status: http.StatusNotModified}
	}
	r.charge = readCharge(len(r.body))
	c.spend(p, r.charge)
	c.progress(r, p, lsn)
	r.set("etag", d.etag)
	r.set("x-ms-item-lsn", strconv.FormatUint(d.lsn, 10))
	r.set("x-ms-cosmos-item-llsn", strconv.FormatUint(d.lsn, 10))
	return r, nil
}
