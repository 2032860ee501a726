package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// Throughput is what a container, or a database, is provisioned with.
type Throughput struct {
	RUPerSecond int  // request units a second; of autoscaled throughput its maximum
	Autoscale   bool // it scales itself, between a tenth of RUPerSecond and all of it
	Minimum     int  // the least that the service allows it to be; 0 where it does not say
	Pending     bool // the service is not done with making it so

	// Usage is what the call that returns it has cost, also where that fails. Azure Resource Manager
	// charges no request units.
	Usage Usage

	offer offer // that was read; zero where Azure Resource Manager was asked
}

// offer is the resource of the data plane that holds a throughput.
type offer struct {
	path     string // /offers/RID
	rid      string
	etag     string
	document map[string]json.RawMessage
}

// ReadThroughput reads the throughput of a container, or of a database where c has no ID. It takes a
// key: the data plane lets no identity read offers. The error is a *Refusal, of kind Serverless,
// SharedThroughput or NoThroughput where there is none to read, or says what to do.
//
// It finds the offer as the SDKs do: by the RID of what it is for, and then reads it alone, since only
// that answer has the minimum and what is pending (azure-sdk-for-go, azcosmos, cosmos_offers.go;
// azure-cosmos-dotnet-v3, CosmosOffers.cs). It asks the region that takes writes, since another one may
// still tell what was there before. Once found, an offer is read by its link with one request, until
// there is nothing any more: a container that was created again has another offer.
func (a *Account) ReadThroughput(ctx context.Context, c Container) (t Throughput, err error) {
	var cost tally
	defer func() { t.Usage = cost.spent() }()
	about := subject{container: c, doing: Reading}
	if link, known := a.offers.Load(c); known {
		t, err = a.readOfferAt(ctx, &cost, about, link.(offer))
		if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Status != http.StatusNotFound {
			return t, err
		}
		a.offers.Delete(c)
	}
	rid, err := a.ridOf(ctx, &cost, about)
	if err != nil {
		return Throughput{}, err
	}
	found, err := a.findOffer(ctx, &cost, about, rid)
	if err == nil && found == nil {
		err = a.noOffer(ctx, &cost, about)
	}
	if err != nil {
		return Throughput{}, err
	}
	link := offer{path: found.path, rid: found.rid}
	if t, err = a.readOfferAt(ctx, &cost, about, link); err == nil {
		a.offers.Store(c, link)
	}
	return t, err
}

// readOfferAt reads an offer by its link.
func (a *Account) readOfferAt(ctx context.Context, cost *tally, about subject, at offer) (t Throughput, err error) {
	err = a.do(ctx, cost, request{about: about, method: http.MethodGet, path: at.path, signed: at.signed(), primary: true}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return a.refused(about, response)
		}
		t, err = a.readOffer(about, response)
		return err
	})
	return t, err
}

// ReplaceThroughput replaces a throughput, as ReadThroughput returned it, by so many request units a
// second. Manual stays manual, and autoscaled autoscaled. The error is a *Refusal of kind Changed where
// it is no longer what was read, and NotAllowed where the service does not allow it.
func (a *Account) ReplaceThroughput(ctx context.Context, c Container, from Throughput, ruPerSecond int) (t Throughput, err error) {
	var cost tally
	defer func() { t.Usage = cost.spent() }()
	about := subject{container: c, doing: Replacing}
	body, err := from.offer.with(from.Autoscale, ruPerSecond)
	if err != nil {
		return Throughput{}, fmt.Errorf("account %s: the throughput of %s is of an unknown form: %w", a.host, about.named(), err)
	}
	err = a.do(ctx, &cost, request{
		about: about, method: http.MethodPut, path: from.offer.path, signed: from.offer.signed(), body: body, primary: true,
		headers: func(h http.Header) { h.Set("If-Match", from.offer.etag) },
	}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusAccepted {
			return a.refused(about, response)
		}
		t, err = a.readOffer(about, response)
		return err
	})
	return t, err
}

// ridOf reads the RID of a container or database.
func (a *Account) ridOf(ctx context.Context, cost *tally, about subject) (rid string, err error) {
	c := about.container
	if c.ID != "" {
		d, used, err := a.Describe(ctx, c)
		cost.add(used)
		return d.RID, err
	}
	err = a.do(ctx, cost, request{about: about, method: http.MethodGet, path: "/dbs/" + url.PathEscape(c.Database), signed: resource{"dbs", "dbs/" + c.Database}}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return a.refused(about, response)
		}
		var database struct {
			RID string `json:"_rid"`
		}
		body, err := runtime.Payload(response)
		if err == nil {
			err = json.Unmarshal(body, &database)
		}
		if err != nil || database.RID == "" {
			return fmt.Errorf("account %s describes database %s without a _rid: is that endpoint a Cosmos DB account?", a.host, c.Database)
		}
		rid = database.RID
		return nil
	})
	return rid, err
}

// findOffer finds the offer for what has a RID; nil where there is none.
func (a *Account) findOffer(ctx context.Context, cost *tally, about subject, rid string) (found *offer, err error) {
	body, err := json.Marshal(query{"SELECT * FROM c WHERE c.offerResourceId = @rid", []parameter{{"@rid", rid}}})
	if err != nil {
		return nil, err
	}
	err = a.do(ctx, cost, request{
		about: about, method: http.MethodPost, path: "/offers", signed: resource{"offers", ""}, body: body, primary: true,
		headers: func(h http.Header) { h.Set(headerIsQuery, "True") },
	}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return a.refused(about, response)
		}
		var page struct {
			Offers *[]map[string]json.RawMessage `json:"Offers"`
		}
		body, err := runtime.Payload(response)
		if err == nil {
			err = json.Unmarshal(body, &page)
		}
		if err == nil && page.Offers == nil {
			err = errors.New("it has no Offers")
		}
		if err == nil && len(*page.Offers) > 0 {
			found = new(offer)
			*found, err = newOffer((*page.Offers)[0])
		}
		if err != nil {
			return fmt.Errorf("account %s: the answer about the throughput of %s is no whole list of offers: %w: the next poll asks again", a.host, about.named(), err)
		}
		return nil
	})
	return found, err
}

// noOffer tells why a container or database has none.
func (a *Account) noOffer(ctx context.Context, cost *tally, about subject) error {
	refusal := &Refusal{Kind: NoThroughput, Account: a.host, Setting: a.options.Setting, Container: about.container, Doing: about.doing}
	if about.container.ID == "" {
		return refusal
	}
	database := subject{container: about.container.database(), doing: Reading}
	rid, err := a.ridOf(ctx, cost, database)
	if err != nil {
		return err
	}
	shared, err := a.findOffer(ctx, cost, database, rid)
	if err != nil {
		return err
	}
	if shared != nil {
		refusal.Kind = SharedThroughput
	}
	return refusal
}

// readOffer reads an offer that is alone in an answer.
func (a *Account) readOffer(about subject, response *http.Response) (Throughput, error) {
	var document map[string]json.RawMessage
	body, err := runtime.Payload(response)
	if err == nil {
		err = json.Unmarshal(body, &document)
	}
	var t Throughput
	if err == nil {
		t.offer, err = newOffer(document)
	}
	if err == nil {
		err = t.read(document["content"])
	}
	if err != nil {
		return Throughput{}, fmt.Errorf("account %s: the answer about the throughput of %s is no offer: %w", a.host, about.named(), err)
	}
	t.Pending = strings.EqualFold(response.Header.Get(headerPending), "true")
	t.Minimum, _ = strconv.Atoi(response.Header.Get(headerMinimum))
	return t, nil
}

// read reads the content of an offer.
func (t *Throughput) read(content []byte) error {
	var c struct {
		Throughput int `json:"offerThroughput"`
		Autoscale  *struct {
			Maximum int `json:"maxThroughput"`
		} `json:"offerAutopilotSettings"`
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return err
	}
	if t.RUPerSecond = c.Throughput; c.Autoscale != nil && c.Autoscale.Maximum > 0 {
		t.RUPerSecond, t.Autoscale = c.Autoscale.Maximum, true
	}
	if t.RUPerSecond <= 0 {
		return errors.New("it has no throughput")
	}
	return nil
}

// newOffer takes an offer's names from its document.
func newOffer(document map[string]json.RawMessage) (offer, error) {
	o := offer{document: document}
	for name, field := range map[string]*string{"_rid": &o.rid, "_etag": &o.etag} {
		if err := json.Unmarshal(document[name], field); err != nil || *field == "" {
			return offer{}, fmt.Errorf("it has no %s", name)
		}
	}
	o.path = "/offers/" + url.PathEscape(o.rid)
	return o, nil
}

// signed is what a signature covers: a request by RID is signed with it in lower case.
func (o offer) signed() resource { return resource{"offers", strings.ToLower(o.rid)} }

// with returns the offer's document with another throughput. Whatever else is in it stays.
func (o offer) with(autoscale bool, ruPerSecond int) ([]byte, error) {
	path := []string{"content", "offerThroughput"}
	if autoscale {
		path = []string{"content", "offerAutopilotSettings", "maxThroughput"}
	}
	return replaced(o.document, path, ruPerSecond)
}

// replaced returns a JSON object with another number at a path.
func replaced(object map[string]json.RawMessage, path []string, number int) (json.RawMessage, error) {
	value := json.RawMessage(strconv.Itoa(number))
	if len(path) > 1 {
		var inner map[string]json.RawMessage
		err := json.Unmarshal(object[path[0]], &inner)
		if err == nil {
			value, err = replaced(inner, path[1:], number)
		}
		if err != nil {
			return nil, err
		}
	}
	object = maps.Clone(object)
	object[path[0]] = value
	return json.Marshal(object)
}

// aboutThroughput tells the refusals apart that only the service's words do: both are a 400
// (https://github.com/Azure/azure-sdk-for-java/issues/18776,
// https://github.com/microsoft/vscode-cosmosdb/issues/1865).
func (r *Refusal) aboutThroughput() {
	if r.Doing == "" {
		return
	}
	switch {
	case strings.Contains(r.Words, "not supported for serverless accounts"):
		r.Kind = Serverless
	case strings.Contains(r.Words, "valid throughput values"):
		r.Kind = NotAllowed
	}
}
