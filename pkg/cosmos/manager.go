package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

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
	Endpoint   string               // of Azure Resource Manager, https://HOST[:PORT]; "" = that of the account's cloud
	Client     policy.ClientOptions // passed to the SDK: transport, retries; its Cloud is ignored
}

// Manager reads and replaces the throughput of an account through Azure Resource Manager, which is the
// only way for an identity: the data plane has no role for offers
// (https://learn.microsoft.com/azure/cosmos-db/reference-data-plane-actions). It is safe for concurrent
// use (docs/decisions/0016-throughput.md).
type Manager struct {
	client *arm.Client
	id     string // resource id of the account, without a trailing slash
	name   string
	o      ManagerOptions
}

// parseAccountID reads the resource id of an account, and returns the account's name.
func parseAccountID(text string) (name string, err error) {
	id, err := arm.ParseResourceID(text)
	if err != nil || !strings.EqualFold(id.ResourceType.String(), "Microsoft.DocumentDB/databaseAccounts") || id.ResourceGroupName == "" || id.SubscriptionID == "" {
		return "", errors.New("is not the resource id of an account; allowed is /subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.DocumentDB/databaseAccounts/NAME (az cosmosdb show --query id)")
	}
	return id.Name, nil
}

// NewManager makes a Manager. No request is made.
func NewManager(o ManagerOptions) (*Manager, error) {
	name, err := parseAccountID(o.ResourceID)
	if err != nil {
		return nil, fmt.Errorf("setting %s__resourceId %w", o.Setting, err)
	}
	o.Client.Cloud = cloudOf(o.Host, strings.TrimSuffix(o.Endpoint, "/"))
	if o.Client.Retry.TryTimeout == 0 {
		o.Client.Retry.TryTimeout = answerTimeout
	}
	o.Client.PerRetryPolicies = append(slices.Clip(o.Client.PerRetryPolicies), countPolicy{})
	client, err := arm.NewClient("feedscale", "v1.0.0", o.Credential, &arm.ClientOptions{
		ClientOptions:         o.Client,
		DisableRPRegistration: true, // where an account exists, its resource provider is registered
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of Azure Resource Manager: %w", err)
	}
	return &Manager{client: client, id: strings.TrimSuffix(o.ResourceID, "/"), name: name, o: o}, nil
}

// countPolicy counts each try of Azure Resource Manager.
type countPolicy struct{}

func (countPolicy) Do(r *policy.Request) (*http.Response, error) {
	response, err := r.Next()
	callOf(r.Raw().Context()).count(response, err)
	return response, err
}

// cloudOf returns the cloud of an account, by the domain of its endpoint, or one whose Azure Resource
// Manager is elsewhere.
func cloudOf(host, endpoint string) cloud.Configuration {
	if endpoint != "" {
		return cloud.Configuration{Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Endpoint: endpoint, Audience: endpoint},
		}}
	}
	switch host = strings.ToLower(host); {
	case strings.HasSuffix(host, ".azure.us"):
		return cloud.AzureGovernment
	case strings.HasSuffix(host, ".azure.cn"):
		return cloud.AzureChina
	}
	return cloud.AzurePublic
}

// settings is the resource throughputSettings, of which "either throughput is required or
// autoscaleSettings is required, but not both" when it is written (azure-rest-api-specs,
// Microsoft.DocumentDB, cosmos-db.json).
type settings struct {
	Properties struct {
		Resource settingsResource `json:"resource"`
	} `json:"properties"`
}

type settingsResource struct {
	Throughput int                `json:"throughput,omitempty"`
	Autoscale  *autoscaleSettings `json:"autoscaleSettings,omitempty"`
	Minimum    string             `json:"minimumThroughput,omitempty"`
	Pending    string             `json:"offerReplacePending,omitempty"`
}

type autoscaleSettings struct {
	Maximum int `json:"maxThroughput"`
}

// ReadThroughput is as that of Account.
func (m *Manager) ReadThroughput(ctx context.Context, c Container) (t Throughput, err error) {
	var cost call
	defer func() { t.Usage = cost.Usage }()
	return ownOrShared(c, func(about subject) (Throughput, error) { return m.read(cost.in(ctx), about) })
}

func (m *Manager) read(ctx context.Context, about subject) (Throughput, error) {
	answer, err := m.send(ctx, http.MethodGet, about, nil)
	if err == nil && !runtime.HasStatusCode(answer, http.StatusOK) {
		err = runtime.NewResponseError(answer)
	}
	if err != nil {
		return Throughput{}, m.failed(about, err)
	}
	var s settings
	if err := runtime.UnmarshalAsJSON(answer, &s); err != nil || s.Properties.Resource.Throughput <= 0 && s.Properties.Resource.Autoscale == nil {
		return Throughput{}, fmt.Errorf("account %s: the answer about the throughput of %s has none: the next poll asks again", m.name, about.named())
	}
	return s.Properties.Resource.throughput(), nil
}

func (r settingsResource) throughput() Throughput {
	t := Throughput{RUPerSecond: r.Throughput, Pending: strings.EqualFold(r.Pending, "true")}
	t.Minimum, _ = strconv.Atoi(r.Minimum)
	if r.Autoscale != nil {
		t.RUPerSecond, t.Autoscale = r.Autoscale.Maximum, true
	}
	return t
}

// ReplaceThroughput is as that of Account, but for a change of somebody else: Azure Resource Manager has
// no condition for a write, so the throughput is read again at once before it. What is written between
// the two is overwritten.
func (m *Manager) ReplaceThroughput(ctx context.Context, c Container, from Throughput, ruPerSecond int) (t Throughput, err error) {
	var cost call
	defer func() { t.Usage = cost.Usage }()
	ctx = cost.in(ctx)
	about := subject{container: c, doing: Replacing}
	now, err := m.read(ctx, about)
	if err != nil {
		return Throughput{}, err
	}
	if now.RUPerSecond != from.RUPerSecond || now.Autoscale != from.Autoscale {
		changed := m.refusal(about, http.StatusPreconditionFailed)
		changed.Status = 0 // no answer said it
		return Throughput{}, changed
	}
	var wanted settings
	if from.Autoscale {
		wanted.Properties.Resource.Autoscale = &autoscaleSettings{ruPerSecond}
	} else {
		wanted.Properties.Resource.Throughput = ruPerSecond
	}
	answer, err := m.send(ctx, http.MethodPut, about, wanted)
	if err == nil && !runtime.HasStatusCode(answer, http.StatusOK, http.StatusAccepted) {
		err = runtime.NewResponseError(answer)
	}
	if err != nil {
		return Throughput{}, m.failed(about, err)
	}
	done, err := m.wait(ctx, answer)
	if err != nil {
		return Throughput{}, m.failed(about, err)
	}
	if !done {
		return Throughput{RUPerSecond: ruPerSecond, Autoscale: from.Autoscale, Minimum: now.Minimum, Pending: true}, nil
	}
	return m.read(ctx, about)
}

// wait waits until a change is made; it is false where that takes longer than managerPatience.
func (m *Manager) wait(ctx context.Context, answer *http.Response) (done bool, err error) {
	poller, err := runtime.NewPoller[json.RawMessage](answer, m.client.Pipeline(), nil)
	if err != nil {
		return false, err
	}
	patience, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	_, err = poller.PollUntilDone(patience, &runtime.PollUntilDoneOptions{Frequency: managerPoll})
	if err != nil && ctx.Err() == nil && errors.Is(patience.Err(), context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// pathOf is the resource id of a container or database.
func (m *Manager) pathOf(c Container) string {
	path := m.id + "/sqlDatabases/" + url.PathEscape(c.Database)
	if c.ID != "" {
		path += "/containers/" + url.PathEscape(c.ID)
	}
	return path
}

func (m *Manager) send(ctx context.Context, method string, about subject, body any) (*http.Response, error) {
	request, err := runtime.NewRequest(ctx, method, m.client.Endpoint()+m.pathOf(about.container)+"/throughputSettings/default?api-version="+managerVersion)
	if err != nil {
		return nil, err
	}
	request.Raw().Header.Set("Accept", "application/json")
	if body != nil {
		if err := runtime.MarshalAsJSON(request, body); err != nil {
			return nil, err
		}
	}
	return m.client.Pipeline().Do(request)
}

// refusal is what a status means. Azure Resource Manager says no substatus.
func (m *Manager) refusal(about subject, status int) *Refusal {
	r := describer{host: m.name, setting: m.o.Setting, identity: true}.refusal(about, status, 0)
	r.Manager, r.scope = true, m.id
	return r
}

// failed turns the error of a request into one that says what to do.
func (m *Manager) failed(about subject, err error) error {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	switch {
	case ok && answer.RawResponse != nil:
		return m.refused(about, answer)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("account %s: Azure Resource Manager did not answer in time, to %s: the next poll tries again: %w", m.name, about.reading(), ctxError(err))
	default:
		var auth interface{ NonRetriable() }
		if errors.As(err, &auth) {
			return fmt.Errorf("there is no token for Azure Resource Manager, to %s: switch on the managed identity of this app, or locally sign in with az login", about.reading())
		}
		return fmt.Errorf("account %s: Azure Resource Manager cannot be reached, to %s: check the network", m.name, about.reading())
	}
}

// refused returns the Refusal of an answer of Azure Resource Manager, which has the account's own answer
// in its words. That of a change that failed comes with a 200, and a code that stands for the status
// (https://github.com/pulumi/pulumi-azure-native/issues/4189).
func (m *Manager) refused(about subject, answer *azcore.ResponseError) *Refusal {
	r := m.refusal(about, answer.StatusCode)
	switch {
	case r.Kind == Missing:
		r.Kind = NoThroughput
	case r.Status == http.StatusConflict || r.Status == http.StatusOK && answer.ErrorCode == "PreconditionFailed":
		r.Kind = Changed
	}
	if body, err := runtime.Payload(answer.RawResponse); err == nil {
		r.Words = wordsOf(body)
	}
	r.aboutThroughput()
	return r
}
