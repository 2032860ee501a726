package cosmosfake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// ManagerOptions configure the part of Azure Resource Manager that Manager stands in for.
type ManagerOptions struct {
	Account string // resource id of the account
	// Token checks the bearer token of a request; an error refuses it with 401, an error that wraps
	// ErrForbidden with 403.
	Token func(bearer string) error
	// Polls is how often the state of a change is read as in progress. The change itself is made at
	// once.
	Polls int
	// ByLocation makes the answer to a change name its state by a Location alone.
	ByLocation bool
}

// manager is the resource type throughputSettings of an account's databases and containers, in
// Azure Resource Manager.
type manager struct {
	ManagerOptions
	server *Server

	mu         sync.Mutex
	operations []*operation
}

// operation is a change on its way.
type operation struct {
	left    int // reads until it is told
	owner   provisioner
	id      string // resource id
	refusal *fault // of the account
}

// Manager is a handler of Azure Resource Manager for the throughput of this account. A test serves
// it over TLS, without which clients send no token. The shapes are those of azure-rest-api-specs,
// Microsoft.DocumentDB, cosmos-db.json: SqlResources_GetSqlContainerThroughput,
// SqlResources_UpdateSqlContainerThroughput, and the same of databases.
func (s *Server) Manager(o ManagerOptions) http.Handler {
	return &manager{ManagerOptions: o, server: s}
}

const managerVersion = "api-version"

func (m *manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestBody))
	if err != nil {
		hangUp(w)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); {
	case !ok:
		managerRefuses(w, http.StatusUnauthorized, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
		return
	case m.Token == nil:
	default:
		if err := m.Token(bearer); errors.Is(err, ErrForbidden) {
			action := "read"
			if r.Method == http.MethodPut {
				action = "write"
			}
			managerRefuses(w, http.StatusForbidden, "AuthorizationFailed", fmt.Sprintf("The client does not have authorization to perform action 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings/%s' over scope '%s' or the scope is invalid. If access was recently granted, please refresh your credentials.", action, r.URL.Path))
			return
		} else if err != nil {
			managerRefuses(w, http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
			return
		}
	}
	if r.URL.Query().Get(managerVersion) == "" {
		managerRefuses(w, http.StatusBadRequest, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests.")
		return
	}
	if n, ok := strings.CutPrefix(r.URL.Path, "/operations/"); ok {
		m.tellOperation(w, r, n)
		return
	}
	owner, err := m.find(r.URL.EscapedPath())
	if err != nil {
		m.refuse(w, err)
		return
	}
	switch r.Method {
	case http.MethodGet:
		m.get(w, r.URL.Path, owner)
	case http.MethodPut:
		m.put(w, r, owner, body)
	default:
		managerRefuses(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "The stand-in does not offer "+r.Method+".")
	}
}

// find finds the database or container of a path:
// ACCOUNT/sqlDatabases/ID[/containers/ID]/throughputSettings/default. The names of Azure's
// resources do not distinguish cases, those of the account's do.
func (m *manager) find(path string) (provisioner, error) {
	if len(path) <= len(m.Account) || !strings.EqualFold(path[:len(m.Account)], m.Account) {
		return nil, &fault{status: http.StatusNotFound, plain: true, message: "The Resource was not found."}
	}
	var parts []string
	for _, part := range strings.Split(strings.Trim(path[len(m.Account):], "/"), "/") {
		decoded, err := url.PathUnescape(part)
		if err != nil {
			return nil, badRequest("The path is not percent-encoded.")
		}
		parts = append(parts, decoded)
	}
	is := func(i int, name string) bool { return i < len(parts) && strings.EqualFold(parts[i], name) }
	n := len(parts)
	if n != 4 && n != 6 || !is(0, "sqlDatabases") || !is(n-2, "throughputSettings") || !is(n-1, "default") || n == 6 && !is(2, "containers") {
		return nil, &fault{status: http.StatusNotFound, plain: true, message: "The Resource was not found."}
	}
	database, ok := m.server.databases.find(parts[1])
	if !ok {
		return nil, notFound()
	}
	if n == 4 {
		return database, nil
	}
	c, ok := database.containers.find(parts[3])
	if !ok {
		return nil, notFound()
	}
	return c, nil
}

// offerOf returns the offer of a database or container. That of serverless accounts is refused in
// the service's own words, wrapped
// (https://github.com/hashicorp/terraform-provider-azurerm/issues/9338).
func (m *manager) offerOf(owner provisioner) (*offer, error) {
	if m.server.serverless {
		return nil, serverlessHasNoOffers()
	}
	o := owner.provisioned().Load()
	if o == nil {
		return nil, notFound()
	}
	return o, nil
}

func (m *manager) get(w http.ResponseWriter, id string, owner provisioner) {
	o, err := m.offerOf(owner)
	if err != nil {
		m.refuse(w, err)
		return
	}
	managerAnswers(w, http.StatusOK, m.settings(id, owner, o))
}

func (m *manager) settings(id string, owner provisioner, o *offer) map[string]any {
	resource := map[string]any{
		"throughput": o.Throughput, "minimumThroughput": strconv.Itoa(o.minimum(owner)),
		"offerReplacePending":          strconv.FormatBool(o.isPending(owner, m.server.now())),
		"instantMaximumThroughput":     strconv.Itoa(owner.ranges() * throughputPerRange),
		"softAllowedMaximumThroughput": strconv.Itoa(mostThroughput),
	}
	if o.Maximum > 0 {
		resource["autoscaleSettings"] = map[string]any{"maxThroughput": o.Maximum}
	}
	kind := "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/throughputSettings"
	if _, ok := owner.(*container); ok {
		kind = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings"
	}
	return map[string]any{"id": id, "type": kind, "name": "default", "properties": map[string]any{"resource": resource}}
}

func (m *manager) put(w http.ResponseWriter, r *http.Request, owner provisioner, body []byte) {
	var input struct {
		Properties struct {
			Resource *struct {
				Throughput *int `json:"throughput"`
				Autoscale  *struct {
					MaxThroughput int `json:"maxThroughput"`
				} `json:"autoscaleSettings"`
			} `json:"resource"`
		} `json:"properties"`
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || json.Unmarshal(body, &input) != nil || input.Properties.Resource == nil {
		managerRefuses(w, http.StatusBadRequest, "BadRequest", "The request content is not a JSON object with properties.resource.")
		return
	}
	wanted, given := offerChange{}, input.Properties.Resource
	if (given.Throughput == nil) == (given.Autoscale == nil) {
		managerRefuses(w, http.StatusBadRequest, "BadRequest", "Either throughput or autoscaleSettings is required, but not both.")
		return
	}
	if given.Throughput != nil {
		wanted.throughput = *given.Throughput
	} else {
		wanted.maximum = &given.Autoscale.MaxThroughput
	}
	o := &operation{left: m.Polls, owner: owner, id: r.URL.Path}
	old, err := m.offerOf(owner)
	if err == nil {
		_, err = m.server.replace(owner, old, wanted, m.server.now())
	}
	_ = errors.As(err, &o.refusal)
	m.operations = append(m.operations, o)
	state := fmt.Sprintf("https://%s/operations/%d?api-version=%s", r.Host, len(m.operations)-1, r.URL.Query().Get(managerVersion))
	if !m.ByLocation {
		w.Header().Set("Azure-AsyncOperation", state)
	}
	w.Header().Set("Location", state+"&result")
	w.Header().Set("Retry-After-Ms", "1")
	if m.ByLocation {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	managerAnswers(w, http.StatusAccepted, map[string]any{"status": "Enqueued"})
}

// tellOperation answers for a change. A refused change is reported here, with a 200
// (https://github.com/pulumi/pulumi-azure-native/issues/4189).
func (m *manager) tellOperation(w http.ResponseWriter, r *http.Request, name string) {
	n, err := strconv.Atoi(name)
	if err != nil || n < 0 || n >= len(m.operations) {
		managerRefuses(w, http.StatusNotFound, "NotFound", "There is no such operation.")
		return
	}
	o, result := m.operations[n], r.URL.Query().Has("result")
	w.Header().Set("Retry-After-Ms", "1")
	if o.left > 0 {
		o.left--
		if result {
			w.Header().Set("Location", "https://"+r.Host+r.URL.RequestURI())
			w.WriteHeader(http.StatusAccepted)
			return
		}
		managerAnswers(w, http.StatusOK, map[string]any{"status": "InProgress"})
		return
	}
	switch {
	case result && o.refusal != nil:
		m.refuse(w, o.refusal)
	case result:
		m.get(w, o.id, o.owner)
	case o.refusal != nil:
		managerAnswers(w, http.StatusOK, map[string]any{"status": "Failed", "error": map[string]any{"code": o.refusal.code(), "message": managerWords(o.refusal)}})
	default:
		managerAnswers(w, http.StatusOK, map[string]any{"status": "Succeeded"})
	}
}

// refuse answers with a refusal of the account, whose message is unchanged.
func (m *manager) refuse(w http.ResponseWriter, err error) {
	var f *fault
	if !errors.As(err, &f) {
		f = &fault{status: http.StatusInternalServerError, message: err.Error()}
	}
	managerAnswers(w, f.status, map[string]any{"code": f.code(), "message": managerWords(f)})
}

func managerWords(f *fault) string {
	return "Message: " + string(f.reply("00000000-0000-0000-0000-000000000000").body) + ", Request URI: /offers, RequestStats: , SDK: Microsoft.Azure.Documents.Common/2.14.0"
}

// managerRefuses answers with a refusal of Azure Resource Manager itself.
func managerRefuses(w http.ResponseWriter, status int, code, message string) {
	managerAnswers(w, status, map[string]any{"error": map[string]any{"code": code, "message": message}})
}

func managerAnswers(w http.ResponseWriter, status int, body map[string]any) {
	text, err := json.Marshal(body)
	if err != nil { // cannot happen: these are texts and numbers
		status, text = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
