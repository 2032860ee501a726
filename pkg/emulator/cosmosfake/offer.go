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
	Maximum    int   // of an autoscaled offer; 0: fixed
	highest    int   // limit ever
}

// limit is how many request units the container may use in a second.
func (o *offer) limit() int { return max(o.Throughput, o.Maximum) }

func (s *Server) newOffer(o *offer) *offer {
	o.id, o.etag, o.changed = encodeRID(randomBytes(3)), s.etag(), s.now().Unix()
	o.highest = o.limit()
	return o
}

// Bounds of what can be provisioned; see https://learn.microsoft.com/azure/cosmos-db/concepts-limits.
const (
	leastThroughput = 400
	leastMaximum    = 1000 // of an autoscaled offer
	mostThroughput  = 1_000_000
)

// minimum is the least that the offer can be lowered to: a hundredth of the highest ever provisioned, and a tenth of the
// highest maximum of an autoscaled one. What is stored counts in the service too, but not here.
func (o *offer) minimum() int {
	if o.Maximum > 0 {
		return max(leastMaximum, roundUp(o.highest/10, 1000))
	}
	return max(leastThroughput, roundUp(o.highest/100, 100))
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// check refuses what is below the least or not a round number, in the words of
// https://github.com/microsoft/vscode-cosmosdb/issues/1865.
func (o *offer) check(least int) error {
	step := 100
	if o.Maximum > 0 {
		step = 1000
	}
	if n := o.limit(); n < least || n > mostThroughput || n%step != 0 {
		return badRequest("The offer should have valid throughput values between %d and %d inclusive in increments of %d.", least, mostThroughput, step)
	}
	return nil
}

// parseOffer reads the throughput that a client wants for a new container or database; nil where it wants none.
func (c *call) parseOffer() (*offer, error) {
	settings, header := c.Header.Get("x-ms-cosmos-offer-autopilot-settings"), c.Header.Get("x-ms-offer-throughput")
	switch {
	case settings == "" && header == "":
		return nil, nil
	case c.server.serverless: // https://github.com/OrleansContrib/Orleans.CosmosDB/issues/46
		return nil, &fault{status: http.StatusBadRequest, plain: true, message: "Setting offer throughput or autopilot on container is not supported for serverless accounts."}
	case settings != "":
		var input struct {
			MaxThroughput int `json:"maxThroughput"`
		}
		if err := json.Unmarshal([]byte(settings), &input); err != nil {
			return nil, badRequest("The header x-ms-cosmos-offer-autopilot-settings is not a JSON object.")
		}
		o := &offer{Throughput: input.MaxThroughput / 10, Maximum: max(input.MaxThroughput, 1)}
		return o, o.check(leastMaximum)
	}
	throughput, err := strconv.Atoi(header)
	if err != nil {
		return nil, badRequest("The header x-ms-offer-throughput is not a number.")
	}
	o := &offer{Throughput: throughput}
	return o, o.check(leastThroughput)
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
	ranges() int // that serve what the offer provides
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

// checkProvisioned refuses offers in a serverless account, worded as in https://github.com/Azure/azure-sdk-for-java/issues/18776.
func (c *call) checkProvisioned() error {
	if !c.server.serverless {
		return nil
	}
	return &fault{status: http.StatusBadRequest, plain: true, message: "Reading or replacing offers is not supported for serverless accounts."}
}

func (c *call) listOffers() (*reply, error) {
	if err := c.checkProvisioned(); err != nil {
		return nil, err
	}
	var all []map[string]any
	c.server.offers(func(of provisioner, o *offer) bool {
		all = append(all, o.document(of))
		return true
	})
	return c.listResources("", "Offers", all)
}

// findOffer finds the offer that the link names.
func (c *call) findOffer() (owner provisioner, found *offer, err error) {
	if err := c.checkProvisioned(); err != nil {
		return nil, nil, err
	}
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

// offerReply tells whether what is offered is there yet: more than the ranges can serve is pending until they were split.
// Splits are the test's business here; the service begins them itself.
func offerReply(owner provisioner, o *offer) *reply {
	pending := o.limit() > owner.ranges()*throughputPerRange
	r := jsonReply(http.StatusOK, o.document(owner), 2)
	r.set("etag", o.etag)
	r.set("x-ms-offer-replace-pending", strconv.FormatBool(pending))
	r.set("x-ms-cosmos-min-throughput", strconv.Itoa(o.minimum()))
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
			Autopilot  *struct {
				MaxThroughput int `json:"maxThroughput"`
			} `json:"offerAutopilotSettings"`
		} `json:"content"`
	}
	if err := json.Unmarshal(c.body, &input); err != nil {
		return nil, badRequest("The input content is not a JSON object that describes an offer.")
	}
	if !matches(c.Header.Get("If-Match"), old.etag) {
		return nil, preconditionFailed()
	}
	next := &offer{id: old.id, etag: c.server.etag(), changed: c.now.Unix(), Throughput: input.Content.Throughput, highest: old.highest}
	switch auto := input.Content.Autopilot; {
	case isTrue(c.Header, "x-ms-cosmos-migrate-offer-to-autopilot"):
		next.Maximum = max(leastMaximum, roundUp(old.limit(), 1000), roundUp(old.highest/10, 1000))
	case isTrue(c.Header, "x-ms-cosmos-migrate-offer-to-manual-throughput"):
		next.Throughput = old.limit()
	case auto == nil && old.Maximum > 0:
		return nil, badRequest("Updating offer to manual throughput is not allowed. Please invoke migration API to migrate this offer.")
	case auto != nil && old.Maximum == 0: // https://github.com/pulumi/pulumi-azure-native/issues/4189
		return nil, badRequest("Updating offer to autoscale throughput is not allowed. Please invoke migration API to migrate this offer.")
	case auto != nil:
		next.Maximum = max(auto.MaxThroughput, 1)
	}
	if next.Maximum > 0 {
		next.Throughput = next.Maximum / 10
	}
	if err := next.check(next.minimum()); err != nil {
		return nil, err
	}
	next.highest = max(old.highest, next.limit())
	owner.provisioned().Store(next)
	r := offerReply(owner, next)
	if r.header["x-ms-offer-replace-pending"] == "true" {
		r.status = http.StatusAccepted // https://github.com/Azure/azure-sdk-for-rust/pull/4096
	}
	return r, nil
}
