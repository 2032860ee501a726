package cosmosfake

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/epk"
)

// container is one container: its properties, and the routing to its partitions.
type container struct {
	server   *Server
	database *database
	id, rid  string
	ridBytes []byte
	key      keyDefinition

	properties atomic.Pointer[properties]
	offer      atomic.Pointer[offer] // nil: no throughput of its own
	serials    atomic.Uint64
	routing    atomic.Pointer[routing]

	shape     sync.Mutex // held by whoever splits, merges or changes the properties
	nextRange int        // guarded by shape
}

// properties is what a client can change about a container.
type properties struct {
	etag       string
	changed    int64 // seconds since 1970
	defaultTTL *int64
	retention  time.Duration              // of the feed of all versions and deletes; 0: the account's
	unique     uniqueKeys                 // never changes
	others     map[string]json.RawMessage // kept as they were given
}

func (c *container) names() (id, rid string) { return c.id, c.rid }

func (c *container) ranges() int { return len(c.routing.Load().entries) }

func (c *container) sharers() int { return 0 }

func (c *container) provisioned() *atomic.Pointer[offer] { return &c.offer }

func (c *container) self() string { return "dbs/" + c.database.rid + "/colls/" + c.rid + "/" }

// ContainerSpec describes a container to create.
type ContainerSpec struct {
	ID           string `yaml:"id"`
	PartitionKey Paths  `yaml:"partitionKey"` // such as /id; more than one is a hierarchical key
	Partitions   int    `yaml:"partitions"`   // partition key ranges at the start; default 1
	// request units per second, divided between the ranges; 0: no limit
	Throughput int `yaml:"throughput"`
	// seconds; -1: only documents with a ttl of their own expire; 0: none do
	DefaultTTL int `yaml:"defaultTtl"`
	// VersionRetention is how far the feed of all versions and deletes reaches back; 0: as the
	// account's.
	VersionRetention time.Duration `yaml:"-"`
}

// Paths are the paths of a partition key. In YAML, a single one needs no list.
type Paths []string

// UnmarshalYAML reads one path or a list of them.
func (p *Paths) UnmarshalYAML(read func(any) error) error {
	var path string
	if read(&path) == nil {
		*p = Paths{path}
		return nil
	}
	return read((*[]string)(p))
}

// CreateContainer creates a container, as a client would. It is an error if one of that name
// exists.
func (s *Server) CreateContainer(db string, spec ContainerSpec) error {
	d, ok := s.databases.find(db)
	if !ok {
		return fmt.Errorf("creating container %s: there is no database %s", spec.ID, db)
	}
	p := &properties{retention: spec.VersionRetention}
	if ttl := int64(spec.DefaultTTL); ttl != 0 {
		p.defaultTTL = &ttl
	}
	var o *offer
	if spec.Throughput > 0 {
		o = &offer{Throughput: spec.Throughput}
	}
	_, err := s.addContainer(d, spec.ID, spec.PartitionKey, spec.Partitions, p, o)
	return err
}

func (s *Server) addContainer(d *database, id string, paths []string, partitions int, p *properties, o *offer) (*container, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	key, err := newKeyDefinition(paths)
	if err != nil {
		return nil, err
	}
	rid := newContainerRID(d.ridBytes)
	c := &container{server: s, database: d, id: id, rid: encodeRID(rid), ridBytes: rid, key: key}
	p.etag, p.changed = s.etag(), s.now().Unix()
	c.properties.Store(p)
	if o != nil {
		c.offer.Store(s.newOffer(o))
	}
	bounds := epk.Bounds(max(partitions, 1))
	c.routing.Store(&routing{})
	var ranges []*partition
	for i := range len(bounds) - 1 {
		ranges = append(ranges, c.newRange(span{bounds[i], bounds[i+1]}, nil, 0))
	}
	c.publish(nil, ranges, "online", false)
	if !d.containers.add(c) {
		return nil, conflict()
	}
	return c, nil
}

// container finds a container for the methods of Server.
func (s *Server) container(db, coll string) (*container, error) {
	if d, ok := s.databases.find(db); ok {
		if c, ok := d.containers.find(coll); ok {
			return c, nil
		}
	}
	return nil, fmt.Errorf("the stand-in has no container %s/%s", db, coll)
}

// versionRetention returns 0 if the feed of all versions and deletes is not offered.
func (c *container) versionRetention() time.Duration {
	if r := c.properties.Load().retention; r > 0 {
		return r
	}
	return c.server.retention
}

// expiryOf returns when a document expires: its own ttl counts only if the container has time to
// live switched on.
func (c *container) expiryOf(d *document) int64 {
	ttl := c.properties.Load().defaultTTL
	if ttl == nil {
		return 0
	}
	if d.ttl != nil {
		ttl = d.ttl
	}
	if *ttl < 0 {
		return 0
	}
	return d.written + *ttl
}

// unmergedClientStatus is the status for a client that does not understand merges, on a container
// with a merge. The service documents that it refuses, not with which code; 400 is an assumption.
const unmergedClientStatus = http.StatusBadRequest

// capabilityMerge is the bit of x-ms-cosmos-sdk-supportedcapabilities that says a client
// understands merges.
const capabilityMerge = 1

func (c *call) acceptClient() error {
	if !c.container.routing.Load().merged {
		return nil
	}
	if c.capabilities()&capabilityMerge == 0 {
		return &fault{status: unmergedClientStatus, message: "The container's partitions were merged, which this client does not support: update the SDK."}
	}
	return nil
}

// capabilities is what the client says it understands.
func (c *call) capabilities() uint64 {
	n, err := strconv.ParseUint(c.Header.Get("x-ms-cosmos-sdk-supportedcapabilities"), 10, bits.UintSize)
	if err != nil {
		return 0
	}
	return n
}

// document is the container as clients read it.
func (c *container) document() map[string]any {
	p := c.properties.Load()
	d := map[string]any{
		"indexingPolicy": map[string]any{
			"indexingMode": "consistent", "automatic": true,
			"includedPaths": []any{map[string]any{"path": "/*"}},
			"excludedPaths": []any{map[string]any{"path": `/"_etag"/?`}},
		},
		"conflictResolutionPolicy": map[string]any{"mode": "LastWriterWins", "conflictResolutionPath": "/_ts", "conflictResolutionProcedure": ""},
		"geospatialConfig":         map[string]any{"type": "Geography"},
	}
	for name, value := range p.others {
		d[name] = value
	}
	if p.defaultTTL != nil {
		d["defaultTtl"] = *p.defaultTTL
	}
	d["id"], d["partitionKey"] = c.id, c.key.document()
	d["_rid"], d["_self"], d["_etag"], d["_ts"] = c.rid, c.self(), p.etag, p.changed
	d["_docs"], d["_sprocs"], d["_triggers"], d["_udfs"], d["_conflicts"] = "docs/", "sprocs/", "triggers/", "udfs/", "conflicts/"
	return d
}
