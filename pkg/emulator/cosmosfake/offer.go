package cosmosfake

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// offer is the provisioned throughput of a container, or of a database whose containers share it:
// fixed, or autoscaled up to a maximum.
type offer struct {
	id         string
	etag       string
	changed    int64 // seconds since 1970
	Throughput int   // request units per second
	Maximum    int   // of an autoscaled offer; 0: fixed
	highest    int   // limit ever
	pending    pending
	ledger     *ledger // of what the offer replaced, too
}

// pending is a change that HoldOffers delays: until then, the old throughput is served.
type pending struct {
	until  time.Time
	before int // request units per second
}

// limit is how many request units the container may use in a second, once nothing is pending.
func (o *offer) limit() int { return max(o.Throughput, o.Maximum) }

// served is the limit at a time.
func (o *offer) served(now time.Time) int {
	if now.Before(o.pending.until) {
		return min(o.limit(), o.pending.before)
	}
	return o.limit()
}

func (s *Server) newOffer(o *offer) *offer {
	now := s.now()
	o.id, o.etag, o.changed = encodeRID(randomBytes(3)), s.etag(), now.Unix()
	o.highest = o.limit()
	o.ledger = newLedger(now, o)
	return o
}

// HoldOffers delays every later change of an offer by a time; until then the old throughput is
// served. The service takes "up to 4 to 6 hours" if it must split ranges
// (https://learn.microsoft.com/azure/cosmos-db/scaling-provisioned-throughput-best-practices).
func (s *Server) HoldOffers(d time.Duration) { s.holdOffers.Store(int64(d)) }

// Bounds of what can be provisioned; see
// https://learn.microsoft.com/azure/cosmos-db/concepts-limits.
const (
	leastThroughput = 400
	leastMaximum    = 1000 // of an autoscaled offer
	mostThroughput  = 1_000_000
)

// Beyond so many containers, each further one that shares a database's throughput raises its
// minimum.
const (
	freeContainers      = 25
	throughputOfAnother = 100
)

// minimum is the lowest value of the offer of p: a hundredth of the highest fixed throughput so
// far, or a tenth of the highest autoscale maximum so far. A database also needs what its
// containers need (https://learn.microsoft.com/azure/cosmos-db/concepts-limits). The service also
// counts the stored data; this stand-in does not.
func (o *offer) minimum(p provisioner) int {
	shared := max(0, p.sharers()-freeContainers) * throughputOfAnother
	if o.Maximum > 0 {
		return max(leastMaximum+10*shared, roundUp(o.highest/10, 1000))
	}
	return max(leastThroughput+shared, roundUp(o.highest/100, 100))
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

// parseOffer reads the throughput that a client wants for a new container or database; nil if it
// wants none.
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
	ranges() int  // that serve what the offer provides
	sharers() int // containers that share it, of a database
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

// checkProvisioned refuses offers in a serverless account, worded as in
// https://github.com/Azure/azure-sdk-for-java/issues/18776.
func (c *call) checkProvisioned() error {
	if !c.server.serverless {
		return nil
	}
	return serverlessHasNoOffers()
}

func serverlessHasNoOffers() *fault {
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
	return c.offerReply(owner, o), nil
}

// isPending reports whether the throughput is not provided yet: more than the ranges can serve is
// pending until they are split. Here the test splits them; the service does it itself.
func (o *offer) isPending(owner provisioner, now time.Time) bool {
	return o.limit() > owner.ranges()*throughputPerRange || now.Before(o.pending.until)
}

func (c *call) offerReply(owner provisioner, o *offer) *reply {
	r := jsonReply(http.StatusOK, o.document(owner), 2)
	r.set("etag", o.etag)
	r.set("x-ms-offer-replace-pending", strconv.FormatBool(o.isPending(owner, c.now)))
	r.set("x-ms-cosmos-min-throughput", strconv.Itoa(o.minimum(owner)))
	return r
}

// offerChange is what a client wants an offer to be.
type offerChange struct {
	throughput  int
	maximum     *int // nil: fixed
	toAutoscale bool // by a migration, which takes no numbers
	toManual    bool
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
	wanted := offerChange{
		throughput:  input.Content.Throughput,
		toAutoscale: isTrue(c.Header, "x-ms-cosmos-migrate-offer-to-autopilot"),
		toManual:    isTrue(c.Header, "x-ms-cosmos-migrate-offer-to-manual-throughput"),
	}
	if auto := input.Content.Autopilot; auto != nil {
		wanted.maximum = &auto.MaxThroughput
	}
	next, err := c.server.replace(owner, old, wanted, c.now)
	if err != nil {
		return nil, err
	}
	r := c.offerReply(owner, next)
	if r.header["x-ms-offer-replace-pending"] == "true" {
		r.status = http.StatusAccepted // https://github.com/Azure/azure-sdk-for-rust/pull/4096
	}
	return r, nil
}

// replace replaces an offer, if that is allowed. The service does not document its answer while
// another change is under way: here the later change wins. If two changes replace the same offer,
// the later is refused.
func (s *Server) replace(owner provisioner, old *offer, wanted offerChange, now time.Time) (*offer, error) {
	next := &offer{id: old.id, etag: s.etag(), changed: now.Unix(), Throughput: wanted.throughput, highest: old.highest, ledger: old.ledger}
	switch {
	case wanted.toAutoscale:
		next.Maximum = max(leastMaximum, roundUp(old.limit(), 1000), roundUp(old.highest/10, 1000))
	case wanted.toManual:
		next.Throughput = old.limit()
	case wanted.maximum == nil && old.Maximum > 0:
		return nil, badRequest("Updating offer to manual throughput is not allowed. Please invoke migration API to migrate this offer.")
	case wanted.maximum != nil && old.Maximum == 0:
		// https://github.com/pulumi/pulumi-azure-native/issues/4189
		return nil, badRequest("Updating offer to autoscale throughput is not allowed. Please invoke migration API to migrate this offer.")
	case wanted.maximum != nil:
		next.Maximum = max(*wanted.maximum, 1)
	}
	if next.Maximum > 0 {
		next.Throughput = next.Maximum / 10
	}
	if err := next.check(next.minimum(owner)); err != nil {
		return nil, err
	}
	next.highest = max(old.highest, next.limit())
	if d := time.Duration(s.holdOffers.Load()); d > 0 {
		next.pending = pending{until: now.Add(d), before: old.served(now)}
	}
	if !owner.provisioned().CompareAndSwap(old, next) {
		return nil, preconditionFailed()
	}
	next.ledger.change(now, next)
	return next, nil
}
