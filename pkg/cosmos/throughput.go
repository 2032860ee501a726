package cosmos

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
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/tidwall/gjson"
)

// Throughput is what a container, or a database, is provisioned with.
type Throughput struct {
	RUPerSecond int  // request units a second; of autoscaled throughput its maximum
	Autoscale   bool // it scales itself, between a tenth of RUPerSecond and all of it
	Minimum     int  // the least that the service allows it to be; 0 if it does not say
	Pending     bool // the service is not done with making it so

	offer azcosmos.ThroughputProperties // zero if Azure Resource Manager was asked
}

// ReadThroughput reads the throughput of a container, or of a database if c has no ID. It takes a
// key: the data plane lets no identity read offers. The error is a *refusal.Error, of kind "serverless" or
// "no throughput" if there is none to read, or says what to do. It asks the region that takes
// writes.
func (a *Account) ReadThroughput(ctx context.Context, c Container) (Throughput, error) {
	return askOffer(ctx, a, &call{about: Subject{Container: c, Doing: reading}}, nil, nil)
}

// ReplaceThroughput replaces a throughput, as ReadThroughput returned it, by so many request units a
// second. Manual stays manual, and autoscaled autoscaled. The error is a *refusal.Error of kind "changed" if
// it is no longer what was read, and "not allowed" if the service does not allow it.
func (a *Account) ReplaceThroughput(ctx context.Context, c Container, from Throughput, ruPerSecond int) (Throughput, error) {
	asked := call{about: Subject{Container: c, Doing: replacing}}
	wanted := azcosmos.NewManualThroughputProperties(int32(ruPerSecond))
	if from.Autoscale {
		wanted = azcosmos.NewAutoscaleThroughputProperties(int32(ruPerSecond))
	}
	if increment, ok := from.offer.AutoscaleIncrement(); ok && increment > 0 {
		wanted = azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(int32(ruPerSecond), increment)
	}
	return askOffer(ctx, a, &asked, &wanted, from.offer.ETag)
}

// askOffer reads the throughput of a container or a database, and replaces it if one is wanted.
func askOffer(ctx context.Context, a *Account, asked *call, wanted *azcosmos.ThroughputProperties, etag *azcore.ETag) (t Throughput, err error) {
	var of interface {
		ReadThroughput(context.Context, *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error)
		ReplaceThroughput(context.Context, azcosmos.ThroughputProperties, *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error)
	}
	if c := asked.about.Container; c.ID == "" {
		of, err = a.sdk.NewDatabase(c.Database)
	} else {
		of, err = a.sdk.NewContainer(c.Database, c.ID)
	}
	if err != nil {
		return t, err
	}
	var response azcosmos.ThroughputResponse
	if wanted == nil {
		response, err = of.ReadThroughput(asked.in(ctx), nil)
	} else {
		response, err = of.ReplaceThroughput(asked.in(ctx), *wanted, &azcosmos.ThroughputOptions{IfMatchEtag: etag})
	}
	if none, ok := errors.AsType[*azcore.ResponseError](err); ok && none.RawResponse != nil {
		// azcosmos makes this error of an empty list of offers.
		return t, a.noThroughput(asked.about)
	}
	if err != nil {
		return t, a.failed(asked, err)
	}
	t.offer, t.Pending = *response.ThroughputProperties, response.IsReplacePending
	if response.MinThroughput != nil {
		t.Minimum = int(*response.MinThroughput)
	}
	most, _ := t.offer.AutoscaleMaxThroughput()
	manual, _ := t.offer.ManualThroughput()
	if t.RUPerSecond, t.Autoscale = int(manual), most > 0; t.Autoscale {
		t.RUPerSecond = int(most)
	}
	if etag := t.offer.ETag; t.RUPerSecond <= 0 || etag == nil || *etag == "" {
		return Throughput{}, fmt.Errorf("account %s: the answer about the throughput of %s is no offer with a throughput and an _etag", a.host, asked.about.named())
	}
	return t, nil
}

const (
	// managerVersion is the api-version of Microsoft.DocumentDB in every request.
	managerVersion = "2024-11-15"
	// managerPatience is how long a change is waited for. One that takes longer is pending: the service
	// needs hours where it has to split partitions.
	managerPatience = 20 * time.Second
	managerPoll     = 2 * time.Second // between two reads of a change's state, unless the service names a time
)

// ManagerOptions say of which account a Manager changes the throughput.
type ManagerOptions struct {
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
	describer // its scope is the resource id of the account
	client    *arm.Client
}

// NewManager makes a Manager. No request is made.
func NewManager(o ManagerOptions) (*Manager, error) {
	id, err := arm.ParseResourceID(o.ResourceID)
	if err != nil || !strings.EqualFold(id.ResourceType.String(), "Microsoft.DocumentDB/databaseAccounts") || id.ResourceGroupName == "" || id.SubscriptionID == "" {
		return nil, fmt.Errorf("setting %s__resourceId is not the resource id of an account; allowed is /subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.DocumentDB/databaseAccounts/NAME (az cosmosdb show --query id)", o.Setting)
	}
	if o.Client.Cloud.Services == nil {
		o.Client.Cloud = cloudOf(strings.ToLower(o.Host))
	}
	o.Client.Retry.TryTimeout = cmp.Or(o.Client.Retry.TryTimeout, answerTimeout)
	identity := &scoped{o.Credential, []string{o.Client.Cloud.Services[cloud.ResourceManager].Audience + "/.default"}}
	client, err := arm.NewClient("feedscale", "v1.0.0", identity, &arm.ClientOptions{
		ClientOptions:         o.Client,
		DisableRPRegistration: true, // where an account exists, its resource provider is registered
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of Azure Resource Manager: %w", err)
	}
	return &Manager{describer{host: id.Name, setting: o.Setting, identity: true, scope: strings.TrimSuffix(o.ResourceID, "/")}, client}, nil
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

// ReadThroughput is as that of Account.
func (m *Manager) ReadThroughput(ctx context.Context, c Container) (t Throughput, err error) {
	about := Subject{Container: c, Doing: reading}
	answer, err := m.send(ctx, http.MethodGet, about, nil)
	if err != nil {
		return t, err
	}
	body, err := runtime.Payload(answer)
	settings := gjson.GetBytes(body, "properties.resource")
	most := settings.Get("autoscaleSettings.maxThroughput").Int()
	t = Throughput{
		RUPerSecond: int(cmp.Or(most, settings.Get("throughput").Int())), Autoscale: most > 0,
		Minimum: int(settings.Get("minimumThroughput").Int()), Pending: settings.Get("offerReplacePending").Bool(), // both are texts
	}
	if err != nil || !json.Valid(body) || t.RUPerSecond <= 0 {
		return Throughput{}, fmt.Errorf("account %s: the answer about the throughput of %s has none: the next poll asks again", m.host, about.named())
	}
	return t, nil
}

// ReplaceThroughput is as that of Account, but for a change of somebody else: Azure Resource Manager has
// no condition for a write, so the throughput is read again at once before it. What is written between
// the two is overwritten.
func (m *Manager) ReplaceThroughput(ctx context.Context, c Container, from Throughput, ruPerSecond int) (Throughput, error) {
	about := Subject{Container: c, Doing: replacing}
	now, err := m.ReadThroughput(ctx, c)
	if err != nil {
		return Throughput{}, err
	}
	if now.RUPerSecond != from.RUPerSecond || now.Autoscale != from.Autoscale {
		return Throughput{}, m.changed(about)
	}
	// "Either throughput is required or autoscaleSettings is required, but not both" (azure-rest-api-specs,
	// Microsoft.DocumentDB, cosmos-db.json).
	resource := map[string]any{"throughput": ruPerSecond}
	if from.Autoscale {
		resource = map[string]any{"autoscaleSettings": map[string]any{"maxThroughput": ruPerSecond}}
	}
	answer, err := m.send(ctx, http.MethodPut, about, map[string]any{"properties": map[string]any{"resource": resource}})
	if err != nil {
		return Throughput{}, err
	}
	patience, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	poller, err := runtime.NewPoller[json.RawMessage](answer, m.client.Pipeline(), nil)
	if err == nil {
		_, err = poller.PollUntilDone(patience, &runtime.PollUntilDoneOptions{Frequency: managerPoll})
	}
	switch {
	case err == nil:
		return m.ReadThroughput(ctx, c)
	case ctx.Err() == nil && errors.Is(patience.Err(), context.DeadlineExceeded):
		return Throughput{RUPerSecond: ruPerSecond, Autoscale: from.Autoscale, Minimum: now.Minimum, Pending: true}, nil
	}
	return Throughput{}, m.failed(about, err)
}

// send sends a request about the throughput of a container or database.
func (m *Manager) send(ctx context.Context, method string, about Subject, body any) (answer *http.Response, err error) {
	path := m.scope + "/sqlDatabases/" + url.PathEscape(about.Container.Database)
	if about.Container.ID != "" {
		path += "/containers/" + url.PathEscape(about.Container.ID)
	}
	request, err := runtime.NewRequest(ctx, method, m.client.Endpoint()+path+"/throughputSettings/default?api-version="+managerVersion)
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
		return nil, m.failed(about, err)
	}
	return answer, nil
}

// failed turns the error of a request into one that says what to do: a refusal if Azure Resource Manager
// answered, which has the account's own answer in its words. That of a change that failed comes with a 200,
// and a code that stands for the status (https://github.com/pulumi/pulumi-azure-native/issues/4189).
func (m *Manager) failed(about Subject, err error) error {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.RawResponse == nil {
		return m.describer.failed(&call{about: about}, err)
	}
	if answer.ErrorCode == "PreconditionFailed" {
		answer.RawResponse.StatusCode = http.StatusPreconditionFailed
	}
	return m.refused(about, answer.RawResponse)
}
