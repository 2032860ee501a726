package cosmosfake

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// partition is one partition key range: the documents whose position lies in its span. Its log
// sequence number (LSN) rises by one with every transaction. What depends on mu says so; the rest
// never changes.
type partition struct {
	id        string
	rid       string
	span      span
	parents   []string // every range this one descends from, the oldest first
	merged    bool     // it, or a range it descends from, came of a merge
	container *container
	budget    budget
	splitting atomic.Bool // a split is under way: requests that name the range are told to wait

	mu       sync.RWMutex
	closed   bool // replaced by others; guarded by mu, as is all that follows
	lsn      uint64
	byName   map[documentName]*document
	unique   map[string]*document // by what they occupy of the container's unique keys
	changes  sequence             // by LSN
	creation sequence             // by serial
	expiry   expiry
	versions versions
}

func newPartition(c *container, id string, serial uint64, s span, parents []string, lsn uint64) *partition {
	return &partition{
		id: id, rid: rangeRID(c.ridBytes, serial), span: s, parents: parents, container: c, lsn: lsn,
		byName: map[documentName]*document{}, unique: map[string]*document{}, changes: byLSN(), creation: bySerial(),
	}
}

// adopt takes over documents of parents, which keep their LSNs. Nobody else knows the partition
// yet.
func (p *partition) adopt(documents []*document, log []version) {
	slices.SortStableFunc(documents, func(a, b *document) int { return cmp.Compare(a.lsn, b.lsn) })
	for _, d := range documents {
		p.byName[d.name] = d
		p.occupy(nil, d)
		p.changes.add(d)
		p.expiry.add(d)
	}
	slices.SortFunc(documents, func(a, b *document) int { return cmp.Compare(a.serial, b.serial) })
	for _, d := range documents {
		p.creation.add(d)
	}
	slices.SortStableFunc(log, func(a, b version) int { return cmp.Compare(a.lsn, b.lsn) })
	p.versions.log = log
}

// read calls fn while nothing changes; ok is false if the partition has been replaced.
func (p *partition) read(now time.Time, fn func()) (ok bool) {
	p.mu.RLock()
	if !p.closed && p.expiry.due(now) {
		p.mu.RUnlock()
		p.mu.Lock()
		if !p.closed {
			p.expire(now)
		}
		p.mu.Unlock()
		p.mu.RLock()
	}
	defer p.mu.RUnlock()
	if !p.closed {
		fn()
	}
	return !p.closed
}

// transaction is a set of writes that become visible together, under one LSN, or not at all.
type transaction struct {
	partition *partition
	now       time.Time
	lsn       uint64
	changed   map[documentName]*document // nil = deleted
	log       []version
}

// write runs fn as one transaction; an error of fn drops it. ok is false if the partition has been
// replaced.
func (p *partition) write(now time.Time, fn func(*transaction) error) (ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, nil
	}
	p.expire(now)
	t := &transaction{partition: p, now: now, lsn: p.lsn + 1, changed: map[documentName]*document{}}
	if err := fn(t); err != nil {
		return true, err
	}
	t.commit()
	return true, nil
}

// expire deletes the documents whose time to live has passed, each in a transaction of its own, as
// the service does in the background. The caller holds mu.
func (p *partition) expire(now time.Time) {
	for p.expiry.due(now) {
		d := p.expiry.pop()
		if p.byName[d.name] != d {
			continue
		}
		t := &transaction{partition: p, now: now, lsn: p.lsn + 1, changed: map[documentName]*document{}}
		t.delete(d, true)
		t.commit()
	}
}

func (t *transaction) get(name documentName) (*document, bool) {
	d, staged := t.changed[name]
	if !staged {
		d = t.partition.byName[name]
	}
	return d, d != nil
}

// put writes a new version in the place of old, which is nil for a new document. It is answered
// with status.
func (t *transaction) put(status int, c *content, old *document) (outcome, error) {
	container := t.partition.container
	d := &document{
		name: documentName{c.key.text, c.id}, epk: c.key.epk, lsn: t.lsn, etag: container.server.etag(),
		written: t.now.Unix(), first: old == nil, ttl: c.ttl, unique: container.properties.Load().unique.of(c.key, c.fields),
	}
	if err := t.checkUnique(d); err != nil {
		return outcome{}, err
	}
	operation := "create"
	if old != nil {
		d.serial, d.rid = old.serial, old.rid
		operation = "replace"
	} else {
		d.serial = container.serials.Add(1)
		d.rid = documentRID(container.ridBytes, d.serial)
	}
	d.expires = container.expiryOf(d)
	d.render(c.fields, container.self())
	t.changed[d.name] = d
	t.log = append(t.log, version{lsn: t.lsn, at: t.now, operation: operation, name: d.name, epk: d.epk, current: d, previous: old})
	return outcome{status, d}, nil
}

func (t *transaction) delete(old *document, expired bool) {
	t.changed[old.name] = nil
	t.log = append(t.log, version{lsn: t.lsn, at: t.now, operation: "delete", name: old.name, epk: old.epk, previous: old, expired: expired})
}

func (t *transaction) commit() {
	if len(t.changed) == 0 {
		return
	}
	p := t.partition
	p.lsn = t.lsn
	for _, entry := range t.log {
		d, pending := t.changed[entry.name]
		if !pending {
			continue
		}
		delete(t.changed, entry.name)
		p.replace(p.byName[entry.name], d)
	}
	p.versions.add(t.log, t.now, p.container.versionRetention())
}

// replace puts a committed version in the place of the one before; either may be nil. The caller
// holds mu.
func (p *partition) replace(old, d *document) {
	if old != nil {
		p.changes.remove(old)
	}
	p.occupy(old, d)
	switch {
	case d == nil && old != nil:
		p.creation.remove(old)
		delete(p.byName, old.name)
		return
	case d == nil:
		return
	case old == nil:
		p.creation.add(d)
	case old.serial == d.serial:
		p.creation.replace(old, d)
	default: // deleted and created again within one transaction
		p.creation.remove(old)
		p.creation.add(d)
	}
	p.byName[d.name] = d
	p.changes.add(d)
	p.expiry.add(d)
	p.expiry.compact(p.byName)
}

// reschedule applies a change of the container's time to live.
func (p *partition) reschedule() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expiry = expiry{}
	for name, old := range p.byName {
		d := *old
		d.expires = p.container.expiryOf(&d)
		p.byName[name] = &d
		p.occupy(old, &d)
		p.changes.replace(old, &d)
		p.creation.replace(old, &d)
		p.expiry.add(&d)
	}
}
