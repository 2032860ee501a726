package cosmosfake

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// largestBody is what the service accepts as one request.
const largestBody = 2 << 20

// call is one request on its way through the account.
type call struct {
	*Request
	server    *Server
	region    *region
	method    string
	host      string
	resource  string   // the resource type, for the signature
	link      []string // the decoded segments of the path
	now       time.Time
	body      []byte
	emptyPage bool // asked for by a control function, as is
	cutShort  bool
	activity  string

	database  *database
	container *container
}

func (s *Server) serve(region *region, w http.ResponseWriter, r *http.Request) {
	s.wait.Add(1)
	defer s.wait.Done()
	c := s.newCall(region, r)
	s.meter.count(c.Kind)
	if a := s.controls.ask(c.Request); a != nil {
		c.cutShort = a.CutShort
		if !s.obey(c, a, w, r) {
			return
		}
		c.emptyPage = a.EmptyPage
		c.now = s.now() // a delay may have passed
	}
	if !c.meet(w, r) {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if !errors.As(err, &tooLarge) {
			hangUp(w) // the client went away
			return
		}
		c.send(w, (&fault{status: http.StatusRequestEntityTooLarge, message: "Request size is too large."}).reply(c.activity))
		return
	}
	c.body = body
	c.send(w, c.answer(r.Header.Get("Authorization")))
}

// obey does what a control function wants. It returns true if the request must then be handled as
// usual.
func (s *Server) obey(c *call, a *Answer, w http.ResponseWriter, r *http.Request) bool {
	if a.Delay > 0 {
		timer := time.NewTimer(a.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			hangUp(w)
			return false
		case <-s.done:
			hangUp(w)
			return false
		}
	}
	switch {
	case a.Break:
		hangUp(w)
		return false
	case a.Status == 0:
		return true
	}
	out := &reply{status: a.Status, body: []byte(a.Body)}
	if a.Body == "" && a.Status >= http.StatusBadRequest {
		out = a.fault().reply(c.activity)
	}
	if a.Substatus != 0 {
		out.set("x-ms-substatus", strconv.Itoa(a.Substatus))
	}
	for name, values := range a.Header {
		out.set(wireName(name), strings.Join(values, ", "))
	}
	c.send(w, out)
	return false
}

// hangUp ends a connection without an answer; a handler that merely returns would answer 200.
func hangUp(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close()
		}
	}
}

func (s *Server) newCall(region *region, r *http.Request) *call {
	c := &call{
		Request: &Request{Region: region.name, Header: r.Header, RangeID: r.Header.Get("x-ms-documentdb-partitionkeyrangeid")},
		server:  s, region: region, method: r.Method, host: r.Host, now: s.now(), activity: r.Header.Get("x-ms-activity-id"),
	}
	if c.activity == "" {
		c.activity = activityID(randomBytes(16))
	}
	// Clients may name a range as container-RID,range-id.
	if _, id, ok := strings.Cut(c.RangeID, ","); ok {
		c.RangeID = id
	}
	var types []string
	path := strings.Trim(r.URL.EscapedPath(), "/")
	if path != "" {
		for i, segment := range strings.Split(path, "/") {
			decoded, err := url.PathUnescape(segment)
			if err != nil {
				decoded = segment
			}
			c.link = append(c.link, decoded)
			if i%2 == 0 {
				types = append(types, strings.ToLower(decoded))
			}
		}
		c.resource = types[len(types)-1]
	}
	for i := 1; i < len(c.link); i += 2 {
		switch types[i/2] {
		case "dbs":
			c.Database = c.link[i]
		case "colls":
			c.Container = c.link[i]
		case "docs", "offers":
			c.Document = c.link[i]
		}
	}
	c.Kind = kindOf(r.Method, types, len(c.link)%2 == 1, r.Header)
	return c
}

func activityID(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (c *call) answer(authorization string) *reply {
	r, err := c.handle(authorization)
	if err == nil {
		return r
	}
	var f *fault
	if !errors.As(err, &f) {
		f = &fault{status: http.StatusInternalServerError, message: "the stand-in failed: " + err.Error()}
	}
	return f.reply(c.activity)
}

// handle authenticates the request, finds the resources of its link, and calls the handler of its
// kind.
func (c *call) handle(authorization string) (*reply, error) {
	if c.Kind == ReadAddresses {
		// GET //addresses/?$resolveFor=... (azure-cosmos-dotnet-v3, GatewayAddressCache) is signed
		// for the resource whose replicas it looks for, which its path does not name: whoever asks
		// is told what to do, not that the key is wrong.
		return nil, badRequest("direct mode is not offered: use ConnectionMode.Gateway")
	}
	if err := c.authenticate(authorization); err != nil {
		return nil, err
	}
	if c.Kind.writes() && !c.server.writes(c.region) {
		return nil, &fault{status: http.StatusForbidden, substatus: substatusWriteForbidden, message: "The requested operation cannot be performed at this region: it accepts no writes."}
	}
	if err := c.checkConsistency(); err != nil {
		return nil, err
	}
	if err := c.resolve(); err != nil {
		// what is not found has no owner: a container's old RID has no content path
		c.database, c.container = nil, nil
		return nil, err
	}
	for _, name := range [...]string{"x-ms-documentdb-pre-trigger-include", "x-ms-documentdb-post-trigger-include"} {
		if c.Header.Get(name) != "" {
			return nil, badRequest("The stand-in does not offer triggers: %s names one.", name)
		}
	}
	switch c.Kind {
	case ReadAccount:
		return c.readAccount(), nil
	case ListDatabases:
		return c.listDatabases()
	case CreateDatabase:
		return c.createDatabase()
	case ReadDatabase:
		return jsonReply(http.StatusOK, c.database.document(), 2), nil
	case DeleteDatabase:
		return c.deleteDatabase()
	case ListContainers:
		return c.listContainers()
	case CreateContainer:
		return c.createContainer()
	case ReadContainer:
		return c.readContainer(), nil
	case ReplaceContainer:
		return c.replaceContainer()
	case DeleteContainer:
		return c.deleteContainer()
	case ListOffers:
		return c.listOffers()
	case ReadOffer:
		return c.readOffer()
	case ReplaceOffer:
		return c.replaceOffer()
	case ReadRanges:
		return c.readRanges(), nil
	case CreateDocument, UpsertDocument:
		return c.createDocument()
	case ReadDocument:
		return c.readDocument()
	case ReplaceDocument:
		return c.replaceDocument()
	case PatchDocument:
		return c.patchDocument()
	case DeleteDocument:
		return c.deleteDocument()
	case ExecuteBatch:
		return c.executeBatch()
	case ListDocuments:
		return c.listDocuments()
	case ReadChangeFeed:
		return c.readChangeFeed()
	case QueryDocuments:
		return c.queryDocuments()
	case PlanQuery:
		return c.planQuery()
	case ListScripts:
		return c.listScripts(), nil
	}
	return nil, badRequest("The stand-in does not offer %s on %s.", c.method, c.resource)
}

// resolve finds the database and the container that the link names.
func (c *call) resolve() error {
	ok := true
	if c.Database != "" {
		if c.database, ok = c.server.databases.find(c.Database); !ok {
			return notFound()
		}
	}
	if c.Container != "" {
		if c.container, ok = c.database.containers.find(c.Container); !ok {
			return notFound()
		}
		if rid := c.Header.Get("x-ms-cosmos-intended-collection-rid"); rid != "" && rid != c.container.rid {
			return &fault{status: http.StatusBadRequest, substatus: substatusOtherContainer, message: "The container was created anew: its RID is not the one that the client means."}
		}
		return c.acceptClient()
	}
	return nil
}

func (c *call) listScripts() *reply {
	name := map[string]string{"sprocs": "StoredProcedures", "triggers": "Triggers", "udfs": "UserDefinedFunctions", "conflicts": "Conflicts"}[c.resource]
	return listReply(c.container.rid, name, []any{}, 1)
}

// send writes the answer with the headers that every answer has.
func (c *call) send(w http.ResponseWriter, r *reply) {
	h := w.Header()
	setHeader(h, "Date", c.now.UTC().Format(http.TimeFormat))
	setHeader(h, "x-ms-activity-id", c.activity)
	setHeader(h, "x-ms-request-charge", strconv.FormatFloat(r.charge, 'f', -1, 64))
	setHeader(h, "x-ms-serviceversion", "version=2.14.0.0")
	setHeader(h, "x-ms-gatewayversion", "version=2.14.0")
	setHeader(h, "x-ms-schemaversion", "1.18")
	c.setOwner(h)
	for name, value := range r.header {
		setHeader(h, name, value)
	}
	c.server.meter.bill(r.charge)
	c.server.logger.Debug("request", "kind", c.Kind, "region", c.Region, "container", c.Container, "range", c.RangeID, "status", r.status,
		"substatus", r.header["x-ms-substatus"], "charge", r.charge)
	if r.status == http.StatusNotModified || r.status == http.StatusNoContent {
		w.WriteHeader(r.status)
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(r.body)))
	w.WriteHeader(r.status)
	if c.cutShort { // net/http ends a connection on which less was written than Content-Length says
		_, _ = w.Write(r.body[:len(r.body)/2])
		return
	}
	_, _ = w.Write(r.body) // a client that went away has no use for an error
}

// setOwner names the resource that owns what the request is about, by names and by RID.
func (c *call) setOwner(h http.Header) {
	switch {
	case c.database == nil:
	case c.resource == "colls":
		setHeader(h, "x-ms-alt-content-path", "dbs/"+c.database.id)
		setHeader(h, "x-ms-content-path", c.database.rid)
	case c.container != nil:
		setHeader(h, "x-ms-alt-content-path", "dbs/"+c.database.id+"/colls/"+c.container.id)
		setHeader(h, "x-ms-content-path", c.container.rid)
	}
}

// minimal reports whether the client wants no document back from a write.
func (c *call) minimal() bool { return strings.EqualFold(c.Header.Get("Prefer"), "return=minimal") }
