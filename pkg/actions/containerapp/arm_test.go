package containerapp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

const (
	subscription = "00000000-0000-0000-0000-00000000000a"
	ordersID     = "/subscriptions/" + subscription + "/resourceGroups/shop/providers/Microsoft.App/containerApps/orders"
	apiVersion   = "2025-01-01"
)

// manager is a stand-in for Azure Resource Manager: it checks the token, the API version and the
// content type of each request, merges patches by RFC 7386, and answers them as long-running
// operations.
type manager struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	apps      map[string]map[string]any // by resource id in lower case
	requests  []string                  // "METHOD path", those for the state of an operation left out
	patches   []string                  // bodies
	revisions int                       // that changes of a template made
	polls     int                       // for the state of an operation until it ends
	outcome   string                    // of operations: an error code; "" = they succeed
	header    string                    // that says where the state of an operation is found
	script    []scripted                // answers in place of the next ones
}

type scripted struct {
	status int
	body   string
}

// refused is an error answer of Azure Resource Manager.
func refused(status int, code, message string) scripted {
	return scripted{status, fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`, code, message)}
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{t: t, apps: make(map[string]map[string]any), header: "Azure-AsyncOperation"}
	m.Server = httptest.NewTLSServer(m)
	t.Cleanup(m.Close)
	return m
}

// add adds the app orders with a template and a configuration.
func (m *manager) add(template, configuration string) {
	m.t.Helper()
	var app map[string]any
	text := fmt.Sprintf(`{"id":%q,"name":"orders","location":"West Europe","identity":{"type":"SystemAssigned"},"properties":{"provisioningState":"Succeeded","configuration":%s,"template":%s}}`,
		ordersID, configuration, template)
	if err := json.Unmarshal([]byte(text), &app); err != nil {
		m.t.Fatal(err)
	}
	m.apps[strings.ToLower(ordersID)] = app
}

func (m *manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.t.Error(err)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer of "+m.URL+"/.default" {
		m.t.Errorf("%s %s: Authorization is %q", r.Method, r.URL, got)
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(r.URL.Path, "/operations/") {
		m.state(w)
		return
	}
	m.requests = append(m.requests, r.Method+" "+r.URL.Path)
	if got := r.URL.Query().Get("api-version"); got != apiVersion {
		m.t.Errorf("%s %s: api-version is %q, want %s", r.Method, r.URL, got, apiVersion)
	}
	if len(m.script) > 0 {
		answer := m.script[0]
		m.script = m.script[1:]
		m.answer(w, answer)
		return
	}
	app := m.apps[strings.ToLower(r.URL.Path)]
	switch {
	case app == nil:
		m.answer(w, refused(http.StatusNotFound, "ResourceNotFound", "The Resource was not found."))
	case r.Method == http.MethodGet:
		m.write(w, http.StatusOK, app)
	case r.Method == http.MethodPatch:
		m.patch(w, r, app, body)
	default:
		m.t.Errorf("%s %s", r.Method, r.URL)
	}
}

func (m *manager) patch(w http.ResponseWriter, r *http.Request, app map[string]any, body []byte) {
	if got := r.Header.Get("Content-Type"); got != "application/json" {
		m.t.Errorf("Content-Type is %s", got)
	}
	m.patches = append(m.patches, string(body))
	var change map[string]any
	if err := json.Unmarshal(body, &change); err != nil {
		m.t.Error(err)
	}
	suffix := template(app)["revisionSuffix"]
	merge(app, change)
	m.revisions++
	if suffix != nil && template(app)["revisionSuffix"] == suffix {
		m.outcome = "ContainerAppInvalidRevisionSuffix" // one revision of that suffix exists
	}
	w.Header().Set(m.header, m.URL+"/operations/1?api-version="+apiVersion)
	w.Header().Set("Retry-After-Ms", "1")
	m.provisioning("InProgress")
	if m.header == "Location" {
		w.WriteHeader(http.StatusAccepted) // and nothing else
		return
	}
	m.write(w, http.StatusAccepted, app)
}

// provisioning sets the provisioningState of the app orders.
func (m *manager) provisioning(state string) {
	m.apps[strings.ToLower(ordersID)]["properties"].(map[string]any)["provisioningState"] = state
}

// state answers for an operation: with its resource where the operation's URL is a Location, else
// with a status of its own.
func (m *manager) state(w http.ResponseWriter) {
	w.Header().Set("Retry-After-Ms", "1")
	m.polls--
	byLocation := m.header == "Location"
	switch {
	case m.polls >= 0 && byLocation:
		w.Header().Set("Location", m.URL+"/operations/1?api-version="+apiVersion)
		w.WriteHeader(http.StatusAccepted)
	case m.polls >= 0:
		m.write(w, http.StatusOK, map[string]any{"status": "InProgress"})
	case m.outcome != "":
		m.provisioning("Failed")
		m.write(w, http.StatusOK, map[string]any{"status": "Failed", "error": map[string]any{"code": m.outcome, "message": "it failed\nin two lines"}})
	case byLocation:
		m.provisioning("Succeeded")
		m.write(w, http.StatusOK, m.apps[strings.ToLower(ordersID)])
	default:
		m.provisioning("Succeeded")
		m.write(w, http.StatusOK, map[string]any{"status": "Succeeded"})
	}
}

func (m *manager) answer(w http.ResponseWriter, s scripted) {
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, s.body)
}

func (m *manager) write(w http.ResponseWriter, status int, body map[string]any) {
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		m.t.Error(err)
	}
}

// merge is RFC 7386.
func merge(into, change map[string]any) {
	for name, value := range change {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case isObject:
			if _, ok := into[name].(map[string]any); !ok {
				into[name] = map[string]any{}
			}
			merge(into[name].(map[string]any), inner)
		default:
			into[name] = value
		}
	}
}

func template(app map[string]any) map[string]any {
	return app["properties"].(map[string]any)["template"].(map[string]any)
}

// bounds returns the replica bounds of the app.
func (m *manager) bounds() map[string]any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(template(m.apps[strings.ToLower(ordersID)])["scale"].(map[string]any))
}

// identity gives a token that names its scope.
type identity struct{}

func (identity) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "of " + strings.Join(o.Scopes, " "), ExpiresOn: time.Now().Add(time.Hour)}, nil
}
