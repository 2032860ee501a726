package cosmosfake

import (
	"encoding/json"
	"net/http"
	"time"
)

// containerInput is a container as a client sends it.
type containerInput struct {
	ID           string `json:"id"`
	PartitionKey struct {
		Paths   []string `json:"paths"`
		Version int      `json:"version"`
	} `json:"partitionKey"`
	UniqueKeys       uniqueKeyPolicy `json:"uniqueKeyPolicy"`
	DefaultTTL       *int64          `json:"defaultTtl"`
	ChangeFeedPolicy struct {
		RetentionMinutes int `json:"retentionDuration"`
	} `json:"changeFeedPolicy"`
}

func parseContainer(body []byte) (*containerInput, *properties, error) {
	var input containerInput
	p := &properties{}
	if json.Unmarshal(body, &input) != nil || json.Unmarshal(body, &p.others) != nil {
		return nil, nil, badRequest("The input content is not a JSON object that describes a container.")
	}
	if ttl := input.DefaultTTL; ttl != nil && (*ttl == 0 || *ttl < -1) {
		return nil, nil, badRequest("The defaultTtl of a container is -1 or a positive number of seconds.")
	}
	for _, name := range [...]string{"computedProperties", "materializedViewDefinition"} {
		if string(p.others[name]) != "null" && string(p.others[name]) != "[]" && p.others[name] != nil {
			return nil, nil, badRequest("The stand-in does not offer %s.", name)
		}
	}
	if input.PartitionKey.Version == 1 {
		return nil, nil, badRequest("The stand-in does not offer partition keys of version 1, only of version 2.")
	}
	var err error
	if p.unique, err = input.UniqueKeys.parse(); err != nil {
		return nil, nil, err
	}
	p.defaultTTL = input.DefaultTTL
	p.retention = time.Duration(input.ChangeFeedPolicy.RetentionMinutes) * time.Minute
	for name, value := range p.others {
		if name == "defaultTtl" || string(value) == "null" {
			delete(p.others, name)
		}
	}
	return &input, p, nil
}

// throughputPerRange is what one partition key range serves at most; a new container gets as many
// ranges as it needs.
const throughputPerRange = 10_000

func (c *call) createContainer() (*reply, error) {
	input, p, err := parseContainer(c.body)
	if err != nil {
		return nil, err
	}
	o, err := c.parseOffer()
	if err != nil {
		return nil, err
	}
	partitions := 1
	if o != nil {
		partitions = (o.limit() + throughputPerRange - 1) / throughputPerRange
	}
	created, err := c.server.addContainer(c.database, input.ID, input.PartitionKey.Paths, partitions, p, o)
	if err != nil {
		return nil, err
	}
	c.container = created
	r := c.readContainer()
	r.status = http.StatusCreated
	return r, nil
}

func (c *call) readContainer() *reply {
	document := c.container.document()
	r := jsonReply(http.StatusOK, document, 1)
	r.set("etag", c.container.properties.Load().etag)
	return r
}

func (c *call) replaceContainer() (*reply, error) {
	input, p, err := parseContainer(c.body)
	if err != nil {
		return nil, err
	}
	if input.ID != c.container.id || len(input.PartitionKey.Paths) > 0 && !equalPaths(input.PartitionKey.Paths, c.container.key.paths) {
		return nil, badRequest("The id and the partition key of a container cannot be changed.")
	}
	c.container.shape.Lock()
	defer c.container.shape.Unlock()
	if !matches(c.Header.Get("If-Match"), c.container.properties.Load().etag) {
		return nil, preconditionFailed()
	}
	if !p.unique.equal(c.container.properties.Load().unique) {
		return nil, badRequest("The unique index cannot be modified. To change the unique index, remove the collection and re-create a new one.")
	}
	p.etag, p.changed = c.server.etag(), c.now.Unix()
	c.container.properties.Store(p)
	for _, e := range c.container.routing.Load().entries {
		e.reschedule()
	}
	return c.readContainer(), nil
}

func equalPaths(a, b []string) bool {
	same := len(a) == len(b)
	for i := range a {
		same = same && a[i] == b[i]
	}
	return same
}

// matches is the meaning of an If-Match header: absent and * match everything.
func matches(condition, etag string) bool {
	return condition == "" || condition == "*" || condition == etag
}

func (c *call) deleteContainer() (*reply, error) {
	if !c.database.containers.remove(c.container) {
		return nil, notFound()
	}
	return &reply{status: http.StatusNoContent, charge: 4.95}, nil
}

func (c *call) listContainers() (*reply, error) {
	var all []map[string]any
	for _, container := range c.database.containers.list() {
		all = append(all, container.document())
	}
	return c.listResources(c.database.rid, "DocumentCollections", all)
}
