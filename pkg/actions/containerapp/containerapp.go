// Package containerapp sets the replica bounds of an Azure Container App
// through Azure Resource Manager.
//
// It knows nothing of queues or of how an identity is found. Start with Action;
// target.go says which app an event means.
package containerapp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/events"
)

// apiVersion is that of Microsoft.App/containerApps in every request.
const apiVersion = "2025-01-01"

// Options are what may be left out. The zero value is Azure's public cloud.
type Options struct {
	Endpoint     string        // of Azure Resource Manager, https://HOST[:PORT]; "" = https://management.azure.com
	PollInterval time.Duration // at which a change under way is asked after, unless the service names one; 0 = 5 s
	Timeout      time.Duration // of one event, the change included; 0 = 10 min

	// Client is handed to the SDK: a transport, retries. Its Cloud is not used.
	Client policy.ClientOptions
}

// Action pins an app to the desired replicas: minReplicas is desiredReplicas
// and maxReplicas the same, at least 1, which is the least that Container Apps
// takes. So an app at 0 is left to its own scale rules between 0 and 1: without
// one that fires, it stays at zero.
//
// Nothing else of the app is sent, and so nothing else changes: a PATCH is
// merged into it. Still Container Apps makes a new revision of every change of
// bounds, since they belong to the template, and replaces the replicas of the
// old one. An app that keeps several revisions active would have one more
// running after each event, and is refused.
type Action struct {
	client  *arm.Client
	options Options
}

// New returns an Action that signs in with an identity, which needs
// Microsoft.App/containerApps/read and /write on the apps. No request is made.
func New(identity azcore.TokenCredential, o Options) (*Action, error) {
	if o.PollInterval == 0 {
		o.PollInterval = 5 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	o.Client.Cloud = cloudOf(strings.TrimSuffix(o.Endpoint, "/"))
	if o.Client.Retry.TryTimeout == 0 {
		o.Client.Retry.TryTimeout = 30 * time.Second
	}
	client, err := arm.NewClient("feedscale", "v1.0.0", identity, &arm.ClientOptions{
		ClientOptions:         o.Client,
		DisableRPRegistration: true, // where there is an app its resource provider is registered
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of Azure Resource Manager: %w", err)
	}
	return &Action{client: client, options: o}, nil
}

// cloudOf finds the cloud of an endpoint; one that the SDK does not know is
// taken for its own audience.
func cloudOf(endpoint string) cloud.Configuration {
	if endpoint == "" {
		return cloud.AzurePublic
	}
	for _, known := range []cloud.Configuration{cloud.AzurePublic, cloud.AzureGovernment, cloud.AzureChina} {
		if strings.EqualFold(known.Services[cloud.ResourceManager].Endpoint, endpoint) {
			return known
		}
	}
	return cloud.Configuration{Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
		cloud.ResourceManager: {Endpoint: endpoint, Audience: endpoint},
	}}
}

// Target is the app that the event's target labels name.
func (a *Action) Target(e events.ScaleEvent) (string, error) {
	target, err := targetOf(e.Data.Target)
	if err != nil {
		return "", err
	}
	return target.String(), nil
}

// Act sets the bounds and waits until the change is done. One to the same bounds
// that is under way already, as of a try that was interrupted, is waited for.
func (a *Action) Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error) {
	target, err := targetOf(e.Data.Target)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	want := boundsFor(e.DesiredReplicas)
	current, err := a.get(ctx, target)
	for err == nil && current.bounds() == want && current.isChanging() {
		if err := a.pause(ctx); err != nil {
			return false, explain(target, "waiting for the change under way of", err)
		}
		current, err = a.get(ctx, target)
	}
	if err != nil {
		return false, explain(target, "reading", err)
	}
	if current.bounds() == want && !current.hasFailed() {
		return false, nil
	}
	if mode := current.Properties.Configuration.ActiveRevisionsMode; mode != "" && !strings.EqualFold(mode, "Single") {
		return false, fmt.Errorf("%s keeps several revisions active (activeRevisionsMode %s), and each change of its bounds would leave one more running: set it to Single", target, mode)
	}
	if err := a.patch(ctx, target, want); err != nil {
		return false, explain(target, "changing", err)
	}
	return true, nil
}

func (a *Action) get(ctx context.Context, target app) (resource, error) {
	request, err := a.request(ctx, http.MethodGet, target)
	if err != nil {
		return resource{}, err
	}
	answer, err := a.client.Pipeline().Do(request)
	if err != nil {
		return resource{}, err
	}
	if !runtime.HasStatusCode(answer, http.StatusOK) {
		return resource{}, runtime.NewResponseError(answer)
	}
	var r resource
	return r, runtime.UnmarshalAsJSON(answer, &r)
}

func (a *Action) pause(ctx context.Context) error {
	select {
	case <-time.After(a.options.PollInterval):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// patch is a long-running operation: it is over when the service says so.
func (a *Action) patch(ctx context.Context, target app, want bounds) error {
	request, err := a.request(ctx, http.MethodPatch, target)
	if err != nil {
		return err
	}
	if err := runtime.MarshalAsJSON(request, newPatch(want)); err != nil {
		return err
	}
	answer, err := a.client.Pipeline().Do(request)
	if err != nil {
		return err
	}
	if !runtime.HasStatusCode(answer, http.StatusOK, http.StatusAccepted) {
		return runtime.NewResponseError(answer)
	}
	poller, err := runtime.NewPoller[resource](answer, a.client.Pipeline(), nil)
	if err != nil {
		return err
	}
	_, err = poller.PollUntilDone(ctx, &runtime.PollUntilDoneOptions{Frequency: a.options.PollInterval})
	return err
}

func (a *Action) request(ctx context.Context, method string, target app) (*policy.Request, error) {
	request, err := runtime.NewRequest(ctx, method, a.client.Endpoint()+target.path()+"?api-version="+apiVersion)
	if err != nil {
		return nil, err
	}
	request.Raw().Header.Set("Accept", "application/json")
	return request, nil
}
