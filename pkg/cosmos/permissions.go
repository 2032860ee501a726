package cosmos

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// ErrPermissionsHidden says that an identity may not ask what it is permitted, which says nothing of
// that.
var ErrPermissionsHidden = errors.New("the identity may not read its own permissions (Microsoft.Authorization/permissions/read)")

// permissionsVersion is the api-version of Microsoft.Authorization in a request.
const permissionsVersion = "2022-04-01"

// permissions is the answer to Permissions - List For Resource: "all permissions the caller has for a
// resource" (azure-rest-api-specs, Microsoft.Authorization, authorization-RoleDefinitionsCalls.json).
type permissions struct {
	Value    []permission `json:"value"`
	NextLink string       `json:"nextLink"`
}

// permission is that of one role: its actions but for its notActions, with * for any text
// (https://learn.microsoft.com/azure/role-based-access-control/role-definitions).
type permission struct {
	Actions    []string `json:"actions"`
	NotActions []string `json:"notActions"`
}

func (p permission) allows(action string) bool {
	covers := func(pattern string) bool {
		expression := strings.ReplaceAll(regexp.QuoteMeta(strings.ToLower(pattern)), `\*`, `.*`)
		matched, err := regexp.MatchString(`^`+expression+`$`, strings.ToLower(action))
		return err == nil && matched
	}
	return slices.ContainsFunc(p.Actions, covers) && !slices.ContainsFunc(p.NotActions, covers)
}

// ProbeReplace is as that of Account. It asks Azure Resource Manager what the identity is permitted; the
// error is ErrPermissionsHidden where the identity may not ask.
func (m *Manager) ProbeReplace(ctx context.Context, c Container, _ Throughput) error {
	about := subject{container: c, doing: Replacing}
	request, err := runtime.NewRequest(ctx, http.MethodGet, m.client.Endpoint()+m.pathOf(c)+"/providers/Microsoft.Authorization/permissions?api-version="+permissionsVersion)
	if err != nil {
		return err
	}
	request.Raw().Header.Set("Accept", "application/json")
	answer, err := m.client.Pipeline().Do(request)
	if err != nil {
		return m.failed(about, err)
	}
	if runtime.HasStatusCode(answer, http.StatusForbidden) {
		runtime.Drain(answer)
		return ErrPermissionsHidden
	}
	if !runtime.HasStatusCode(answer, http.StatusOK) {
		return m.failed(about, runtime.NewResponseError(answer))
	}
	var granted permissions
	if err := runtime.UnmarshalAsJSON(answer, &granted); err != nil {
		return ErrPermissionsHidden
	}
	action := "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings/write"
	if c.ID == "" {
		action = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/throughputSettings/write"
	}
	switch {
	case slices.ContainsFunc(granted.Value, func(p permission) bool { return p.allows(action) }):
		return nil
	case granted.NextLink != "":
		return ErrPermissionsHidden
	}
	return m.refusal(about, NotPermitted)
}
