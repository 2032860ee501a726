package tablestore_test

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/refusal"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

func TestAProbeCreatesTheTableAndLeavesNoRow(t *testing.T) {
	t.Parallel()
	store := open(t)
	for range 2 {
		if err := state.Probe(t.Context(), store); err != nil {
			t.Error(err)
		}
	}
	var asked recorder
	look, err := tablestore.OpenWithConnectionString(account, tableOf(t), through(asked.record(network)))
	if err != nil {
		t.Fatal(err)
	}
	if record, err := storetest.Load(t.Context(), look, "check.probe"); err != nil || record.Version != "" || len(record.Outbox) != 0 {
		t.Errorf("left behind: %+v, %v", record, err)
	}
	if err := state.Probe(t.Context(), look); err != nil {
		t.Fatal(err)
	}
	var methods []string
	for _, request := range asked.asked()[1:] {
		method, _, _ := strings.Cut(request, " ")
		methods = append(methods, method)
	}
	if want := []string{"GET", "POST", "DELETE"}; !slices.Equal(methods, want) {
		t.Errorf("asked %q, want a read, a write and a deletion: %q", asked.asked()[1:], want)
	}
}

func TestAProbeTellsWhatTheTableServiceSaid(t *testing.T) {
	t.Parallel()
	noContent := func() *http.Response { return response(http.StatusNoContent, "", "ETag", `W/"1"`) }
	none := func() *http.Response { return rows() }
	for _, c := range []struct {
		rule    string
		answers map[string]func() *http.Response // by method; TABLE creates the table
		want    refusal.Error
		command string // its beginning; "" = all holds
	}{
		{"the row may not be written", map[string]func() *http.Response{
			"GET": none, "POST": func() *http.Response { return refusing(403, "AuthorizationPermissionMismatch") },
		}, refusal.Error{Status: 403, Kind: "AuthorizationPermissionMismatch"}, "az storage account show-connection-string --resource-group RESOURCE_GROUP --name shop "},
		{"the table is missing and may not be created", map[string]func() *http.Response{
			"GET": none, "POST": func() *http.Response { return refusing(404, "TableNotFound") },
			"TABLE": func() *http.Response { return refusing(403, "AuthorizationPermissionMismatch") },
		}, refusal.Error{Status: 403, Kind: "AuthorizationPermissionMismatch"}, "az storage table create --name feedscale --account-name shop "},
		{"rows may not be read", map[string]func() *http.Response{
			"GET": func() *http.Response { return refusing(403, "AuthorizationFailure") },
		}, refusal.Error{Status: 403, Kind: "AuthorizationFailure"}, "az storage account network-rule add --resource-group RESOURCE_GROUP --account-name shop "},
		{"rows may not be deleted", map[string]func() *http.Response{
			"GET": none, "POST": noContent, "DELETE": func() *http.Response { return refusing(403, "AuthorizationFailure") },
		}, refusal.Error{Status: 403, Kind: "AuthorizationFailure"}, "az storage account network-rule add --resource-group RESOURCE_GROUP --account-name shop "},
		{"another probe was faster in deleting", map[string]func() *http.Response{
			"GET": none, "POST": noContent, "DELETE": func() *http.Response { return refusing(404, "ResourceNotFound") },
		}, refusal.Error{}, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			store := openThrough(t, keyed, func(request *http.Request) (*http.Response, error) {
				if strings.HasSuffix(request.URL.Path, "/Tables") {
					return c.answers["TABLE"](), nil
				}
				return c.answers[request.Method](), nil
			})
			err := state.Probe(t.Context(), store)
			if c.command == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var got *refusal.Error
			if !errors.As(err, &got) || got.Status != c.want.Status || got.Kind != c.want.Kind || !strings.HasPrefix(got.Command, c.command) || got.Remedy == "" {
				t.Errorf("got %+v (%v), want %+v", got, err, c.want)
			}
			if showsSecret(err) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestAProbeThatIsNotAnsweredIsNoRefusal(t *testing.T) {
	t.Parallel()
	store := openThrough(t, "TableEndpoint=https://shop.table.core.windows.net;SharedAccessSignature=sv=1&sig="+secretSignature, func(request *http.Request) (*http.Response, error) {
		return nil, broken(request, &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	})
	err := state.Probe(t.Context(), store)
	if err == nil || errors.As(err, new(*refusal.Error)) || showsSecret(err) {
		t.Errorf("got %v, want an error that is no refusal and shows no secret", err)
	}
}
