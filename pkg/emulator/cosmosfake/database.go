package cosmosfake

import (
	"strings"
	"sync/atomic"
)

type database struct {
	id, rid    string
	ridBytes   []byte
	etag       string
	changed    int64 // seconds since 1970
	containers directory[*container]
	offer      atomic.Pointer[offer] // shared by the containers that have none; nil: none
}

func (d *database) names() (id, rid string) { return d.id, d.rid }

func (d *database) self() string { return "dbs/" + d.rid + "/" }

// ranges counts those of the containers that share the database's throughput; there is always one.
func (d *database) ranges() int {
	n := 0
	for _, c := range d.containers.list() {
		if c.offer.Load() == nil {
			n += c.ranges()
		}
	}
	return max(n, 1)
}

func (d *database) sharers() int {
	n := 0
	for _, c := range d.containers.list() {
		if c.offer.Load() == nil {
			n++
		}
	}
	return n
}

func (d *database) provisioned() *atomic.Pointer[offer] { return &d.offer }

func (d *database) document() map[string]any {
	return map[string]any{
		"id": d.id, "_rid": d.rid, "_self": d.self(), "_etag": d.etag, "_ts": d.changed,
		"_colls": "colls/", "_users": "users/",
	}
}

// CreateDatabase creates a database, as a client would. It is an error if one of that name exists.
func (s *Server) CreateDatabase(id string) error {
	_, err := s.addDatabase(id, nil)
	return err
}

func (s *Server) addDatabase(id string, o *offer) (*database, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	rid := newDatabaseRID()
	d := &database{id: id, rid: encodeRID(rid), ridBytes: rid, etag: s.etag(), changed: s.now().Unix()}
	if o != nil {
		d.offer.Store(s.newOffer(o))
	}
	if !s.databases.add(d) {
		return nil, conflict()
	}
	return d, nil
}

// checkID refuses the ids that cannot stand in a link.
func checkID(id string) error {
	if id == "" {
		return badRequest("The input content is invalid because the required properties - 'id; ' - are missing")
	}
	if len(id) > 1023 || strings.ContainsAny(id, `/\?#`) {
		return badRequest("The id is longer than 1023 bytes or contains one of the characters / \\ ? #")
	}
	return nil
}
