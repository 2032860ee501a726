// Package manager reads and replaces the throughput of Cosmos DB accounts through Azure Resource Manager
// (docs/decisions/0016-throughput.md). Start with [Manager].
//
// The package is internal to the program: its API may change in any release.
package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/tidwall/gjson"

	"github.com/feedscale/feedscale/pkg/cosmos"
)

const (
	// apiVersion is the api-version of Microsoft.DocumentDB in every request.
	apiVersion = "2024-11-15"
	// patience is how long a change is waited for. One that takes longer is pending: the service
	// needs hours where it has to split partitions.
	patience     = 20 * time.Second
	tryTimeout   = 10 * time.Second
	pollInterval = 2 * time.Second // between two reads of a change's state, unless the service names a time
)

// Options say of which account a Manager changes the throughput.
type Options struct {
	ResourceID string // of the account
	Setting    string // name of the setting with the connection, for messages
	Host       string // of the account's endpoint, which tells the cloud
	Credential azcore.TokenCredential
	Client     policy.ClientOptions // passed to the SDK: transport, retries; without a Cloud, that of the account's endpoint
}

// Manager reads and replaces the throughput of an account through Azure Resource Manager, which is the
// only way for an identity: the data plane has no role for offers
// (https://learn.microsoft.com/azure/cosmos-db/reference-data-plane-actions). It is safe for concurrent
// use (docs/decisions/0016-throughput.md).
type Manager struct {
	errors cosmos.ManagerErrors
	client *arm.Client
}

// New makes a Manager. No request is made.
func New(o Options) (*Manager, error) {
	id, err := arm.ParseResourceID(o.ResourceID)
	if err != nil || !strings.EqualFold(id.ResourceType.String(), "Microsoft.DocumentDB/databaseAccounts") || id.ResourceGroupName == "" || id.SubscriptionID == "" {
		return nil, fmt.Errorf("setting %s__resourceId is not the resource id of an account; allowed is /subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.DocumentDB/databaseAccounts/NAME (az cosmosdb show --query id)", o.Setting)
	}
	if o.Client.Cloud.Services == nil {
		o.Client.Cloud = cloudOf(strings.ToLower(o.Host))
	}
	o.Client.Retry.TryTimeout = cmp.Or(o.Client.Retry.TryTimeout, tryTimeout)
	identity := cosmos.WithScope(o.Credential, o.Client.Cloud.Services[cloud.ResourceManager].Audience+"/.default")
	client, err := arm.NewClient("feedscale", "v1.0.0", identity, &arm.ClientOptions{
		ClientOptions:         o.Client,
		DisableRPRegistration: true, // where an account exists, its resource provider is registered
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of Azure Resource Manager: %w", err)
	}
	return &Manager{cosmos.ManagerErrors{Account: id.Name, Setting: o.Setting, ResourceID: strings.TrimSuffix(o.ResourceID, "/")}, client}, nil
}

// cloudOf returns the cloud of an account, by the domain of its endpoint.
func cloudOf(host string) cloud.Configuration {
	switch {
	case strings.HasSuffix(host, ".azure.us"):
		return cloud.AzureGovernment
	case strings.HasSuffix(host, ".azure.cn"):
		return cloud.AzureChina
	}
	return cloud.AzurePublic
}

// ReadThroughput is as that of cosmos.Account.
func (m *Manager) ReadThroughput(ctx context.Context, c cosmos.Container) (t cosmos.Throughput, err error) {
	about := cosmos.Subject{Container: c, Doing: cosmos.Reading}
	answer, err := m.send(ctx, http.MethodGet, about, nil)
	if err != nil {
		return t, err
	}
	body, err := runtime.Payload(answer)
	settings := gjson.GetBytes(body, "properties.resource")
	most := settings.Get("autoscaleSettings.maxThroughput").Int()
	t = cosmos.Throughput{
		RUPerSecond: int(cmp.Or(most, settings.Get("throughput").Int())), Autoscale: most > 0,
		Minimum: int(settings.Get("minimumThroughput").Int()), Pending: settings.Get("offerReplacePending").Bool(), // both are texts
	}
	if err != nil || !json.Valid(body) || t.RUPerSecond <= 0 {
		return cosmos.Throughput{}, fmt.Errorf("account %s: the answer about the throughput of %s has none: the next poll asks again", m.errors.Account, about.Named())
	}
	return t, nil
}

// ReplaceThroughput replaces a throughput as cosmos.Account does. But Azure Resource Manager has no condition for
// a write, so the throughput is read again right before it. What is written between
// the two is overwritten.
func (m *Manager) ReplaceThroughput(ctx context.Context, c cosmos.Container, from cosmos.Throughput, ruPerSecond int) (cosmos.Throughput, error) {
	about := cosmos.Subject{Container: c, Doing: cosmos.Replacing}
	now, err := m.ReadThroughput(ctx, c)
	if err != nil {
		return cosmos.Throughput{}, err
	}
	if now.RUPerSecond != from.RUPerSecond || now.Autoscale != from.Autoscale {
		return cosmos.Throughput{}, m.errors.Changed(about)
	}
	// "Either throughput is required or autoscaleSettings is required, but not both" (azure-rest-api-specs,
	// Microsoft.DocumentDB, cosmos-db.json).
	resource := map[string]any{"throughput": ruPerSecond}
	if from.Autoscale {
		resource = map[string]any{"autoscaleSettings": map[string]any{"maxThroughput": ruPerSecond}}
	}
	answer, err := m.send(ctx, http.MethodPut, about, map[string]any{"properties": map[string]any{"resource": resource}})
	if err != nil {
		return cosmos.Throughput{}, err
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	poller, err := runtime.NewPoller[json.RawMessage](answer, m.client.Pipeline(), nil)
	if err == nil {
		_, err = poller.PollUntilDone(waiting, &runtime.PollUntilDoneOptions{Frequency: pollInterval})
	}
	switch {
	case err == nil:
		return m.ReadThroughput(ctx, c)
	case ctx.Err() == nil && errors.Is(waiting.Err(), context.DeadlineExceeded):
		return cosmos.Throughput{RUPerSecond: ruPerSecond, Autoscale: from.Autoscale, Minimum: now.Minimum, Pending: true}, nil
	}
	return cosmos.Throughput{}, m.errors.Failed(about, err)
}

// send sends a request about the throughput of a container or database.
func (m *Manager) send(ctx context.Context, method string, about cosmos.Subject, body any) (answer *http.Response, err error) {
	path := m.errors.ResourceID + "/sqlDatabases/" + url.PathEscape(about.Container.Database)
	if about.Container.ID != "" {
		path += "/containers/" + url.PathEscape(about.Container.ID)
	}
	request, err := runtime.NewRequest(ctx, method, m.client.Endpoint()+path+"/throughputSettings/default?api-version="+apiVersion)
	if err == nil && body != nil {
		err = runtime.MarshalAsJSON(request, body)
	}
	if err == nil {
		request.Raw().Header.Set("Accept", "application/json")
		answer, err = m.client.Pipeline().Do(request)
	}
	if err == nil && !runtime.HasStatusCode(answer, http.StatusOK, http.StatusAccepted) {
		err = runtime.NewResponseError(answer)
	}
	if err != nil {
		return nil, m.errors.Failed(about, err)
	}
	return answer, nil
}
