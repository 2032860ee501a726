package cosmosfake

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync/atomic"
)

// offer is the provisioned throughput of a container, or of a database whose containers share it: fixed, or autoscaled up
// to a maximum.
type offer struct {
	id         string
	etag       string
	changed    int64 // seconds since 1970
	Throughput int   // request units per second
	Maximum    int   // of an autoscaled container; 0: fixed
}

// limit is how many request units the container may use in a second.
func (o *offer) limit() int { return max(o.Throughput, o.Maximum) }

func (s *Server) newOffer(o *offer) *offer {
	o.id, o.etag, o.changed = encodeRID(randomBytes(3)), s.etag(), s.now().Unix()
	return o
}

// parseOfferHeaders reads the throughput that a client wants for a new container; nil where it wants none.
func parseOfferHeaders(h http.Header) (*offer, error) {
	if settings := h.Get("x-ms-cosmos-offer-autopilot-settings"); settings != "" {
		var input struct {
			MaxThroughput int `json:"maxThroughput"`
		}
		if err := json.Unmarshal([]byte(settings), &input); err != nil || input.MaxThroughput < 1000 {
			return nil, badRequest("The autoscale maximum is at least 1000 request units per second.")
		}
		return &offer{Throughput: input.MaxThroughput / 10, Maximum: input.MaxThroughput}, nil
	}
	header := h.Get("x-ms-offer-throughput")
	if header == "" {
		return nil, nil
	}
	throughput, err := strconv.Atoi(header)
	if err != nil || throughput < 400 {
		return nil, badRequest("The throughput is a number of request units per second, at least 400.")
	}
	return &offer{Throughput: throughput}, nil
}

func (o *offer) document(of provisioner) map[string]any {
	content := map[string]any{"offerThroughput": o.Throughput, "offerIsRUPerMinuteThroughputEnabled": false}
	if o.Maximum > 0 {
		content["offerAutopilotSettings"] = map[string]any{"maxThroughput": o.Maximum}
	}
	_, rid := of.names()
	return map[string]any{
		"id": o.id, "_rid": o.id, "_self": "offers/" + o.id + "/", "_etag": o.etag, "_ts": o.changed,
		"resource": of.self(), "offerResourceId": rid, "offerType": "Invalid", "offerVersion": "V2", "content": content,
	}
}

// provisioner is a container or a database: what can have an offer.
type provisioner interface {
	resource
	self() string
	provisioned() *atomic.Pointer[offer]
}

// offers calls fn with everything that has provisioned throughput, until fn returns false.
func (s *Server) offers(fn func(provisioner, *offer) bool) {
	for _, d := range s.databases.list() {
		all := []provisioner{d}
		for _, c := range d.containers.list() {
			all = append(all, c)
		}
		for _, p := range all {
			if o := p.provisioned().Load(); o != nil && !fn(p, o) {
				return
			}
		}
	}
}

func (c *call) listOffers() (*reply, error) {
	var all []map[string]any
	c.server.offers(func(of provisioner, o *offer) bool {
		all = append(all, o.document(of))
		return true
	})
	return c.listResources("", "Offers", all)
}

// findOffer finds the offer that the link names.
func (c *call) findOffer() (owner provisioner, found *offer, err error) {
	c.server.offers(func(of provisioner, o *offer) bool {
		if o.id == c.Document {
			owner, found = of, o
		}
		return found == nil
	})
	if found == nil {
		return nil, nil, notFound()
	}
	return owner, found, nil
}

func (c *call) readOffer() (*reply, error) {
	owner, o, err := c.findOffer()
	if err != nil {
		return nil, err
	}
	return offerReply(owner, o), nil
}

func offerReply(owner provisioner, o *offer) *reply {
	r := jsonReply(http.StatusOK, o.document(owner), 2)
	r.set("etag", o.etag)
	r.set("x-ms-offer-replace-pending", "false")
	r.set("x-ms-cosmos-min-throughput", "400")
	return r
}

func (c *call) replaceOffer() (*reply, error) {
	owner, old, err := c.findOffer()
	if err != nil {
		return nil, err
	}
	var input struct {
		Content struct {
			Throughput int `json:"offerThroughput"`
			Autopilot  struct {
				MaxThroughput int `json:"maxThroughput"`
			} `json:"offerAutopilotSettings"`
		} `json:"content"`
	}
	if err := json.Unmarshal(c.body, &input); err != nil {
		return nil, badRequest("The input content is not a JSON object that describes an offer.")
	}
	next := &offer{id: old.id, etag: c.server.etag(), changed: c.now.Unix(), Throughput: input.Content.Throughput, Maximum: input.Content.Autopilot.MaxThroughput}
	if next.Maximum > 0 {
		next.Throughput = next.Maximum / 10
	}
	if next.limit() < 400 {
		return nil, badRequest("The throughput is at least 400 request units per second.")
	}
	owner.provisioned().Store(next)
	return offerReply(owner, next), nil
}
