// Package containerapp is the action that sets the replica bounds of an Azure Container App through
// Azure Resource Manager (docs/consume.md).
//
// It knows nothing of queues or of how an identity is found. Start with Action; target.go says
// which app an event is about.
//
// The package is internal to the program: its API may change in any release.
package containerapp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/tidwall/gjson"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// apiVersion is the api-version of Microsoft.App/containerApps in every request.
const apiVersion = "2025-01-01"

// Kind describes this action to a program that offers it.
func Kind() actions.Kind {
	return actions.Kind{
		Name: "containerapp", Summary: "replica bounds",
		Caution: "Container Apps makes a new revision of every change of scale bounds, and replaces the replicas of the old one: a scale rule on a signal queue changes the count alone (https://github.com/feedscale/feedscale/blob/main/docs/signal-queue.md)",
		Flags:   []actions.Flag{{Name: "arm-endpoint", Usage: "Azure Resource Manager of containerapp, in a national cloud (default https://management.azure.com)"}},
		New: func(o actions.Options) (actions.Action, error) {
			endpoint := o.Flag("arm-endpoint")
			if endpoint != "" && !isServer(endpoint) {
				return nil, errors.New("--arm-endpoint: is not that of an Azure Resource Manager; allowed is https://HOST or https://HOST:PORT, such as https://management.usgovcloudapi.net")
			}
			identity, err := o.Identity()
			if err != nil {
				return nil, err
			}
			return New(identity, Options{Endpoint: endpoint})
		},
	}
}

// isServer reports whether an address is https://HOST[:PORT] and nothing more.
func isServer(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || !strings.EqualFold("https://"+u.Host, strings.TrimSuffix(address, "/")) {
		return false
	}
	_, err = strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	return err == nil
}

// Options are optional. The zero value is for Azure's public cloud.
type Options struct {
	Endpoint string               // of Azure Resource Manager, https://HOST[:PORT]; "" = https://management.azure.com
	Client   policy.ClientOptions // passed to the SDK: transport, retries. Its Cloud is ignored
}

const (
	// timeout is for one event, until its change is complete.
	timeout = 10 * time.Minute
	// pollInterval is between two reads of a change in progress, unless the service names a time.
	pollInterval = 5 * time.Second
)

// Action sets minReplicas and maxReplicas of an app to desiredReplicas; maxReplicas is at least 1, the
// smallest value that Container Apps accepts. So at 0 the app's own scale rules decide between 0 and 1
// replicas: without a rule that fires, it has none.
//
// A PATCH is merged into the app, so that nothing else changes. Still, Container Apps makes a new revision
// at each change of the bounds, since they belong to the template, and replaces the replicas of the old
// one. Act refuses an app that keeps several revisions active: it would have one more after each event.
type Action struct{ client *arm.Client }

// New returns an Action that signs in with an identity, which needs the permissions
// Microsoft.App/containerApps/read and /write on the apps (docs/permissions.md). It makes no
// request.
func New(identity azcore.TokenCredential, o Options) (*Action, error) {
	endpoint := cmp.Or(strings.TrimSuffix(o.Endpoint, "/"), "https://management.azure.com")
	// In every cloud, the endpoint is also an audience of tokens (ArmEnvironment.cs of azure-sdk-for-net).
	o.Client.Cloud.Services = map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: {Endpoint: endpoint, Audience: endpoint}}
	o.Client.Retry.TryTimeout = cmp.Or(o.Client.Retry.TryTimeout, 30*time.Second)
	if o.Client.Transport == nil {
		o.Client.Transport = bounded.NewClient()
	}
	client, err := arm.NewClient("feedscale", "v1.0.0", identity, &arm.ClientOptions{
		ClientOptions:         o.Client,
		DisableRPRegistration: true, // where an app exists, its resource provider is registered
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of Azure Resource Manager: %w", err)
	}
	return &Action{client}, nil
}

// Target returns the name of the app in the event's target labels.
func (a *Action) Target(e events.ScaleEvent) (string, error) {
	target, err := targetOf(e.Data.Target)
	if err != nil {
		return "", err
	}
	return target.String(), nil
}

// Act sets the bounds and waits until the change is complete. A change to the same bounds that is already in
// progress, as after an interrupted try, is an error: the next try sees how it ended.
func (a *Action) Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error) {
	target, err := targetOf(e.Data.Target)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	current, err := a.read(ctx, target)
	if err != nil {
		return false, explain(target, "reading", err)
	}
	// Without bounds in the template, they are 0 and 10 (https://learn.microsoft.com/azure/container-apps/scale-app).
	scale := current.Get("template.scale")
	have := bounds{scale.Get("minReplicas").Int(), cmp.Or(scale.Get("maxReplicas").Int(), 10)}
	want := bounds{int64(e.DesiredReplicas), max(int64(e.DesiredReplicas), 1)}
	if have == want {
		switch strings.ToLower(current.Get("provisioningState").Str) {
		case "succeeded", "":
			return false, nil
		case "failed", "canceled": // the bounds are in the template, and not in effect
		default:
			return false, fmt.Errorf("a change of %s to these bounds is under way: see its revisions in the portal if it does not end", target)
		}
	}
	if mode := current.Get("configuration.activeRevisionsMode").Str; mode != "" && !strings.EqualFold(mode, "Single") {
		return false, fmt.Errorf("%s keeps several revisions active (activeRevisionsMode %s), and each change of its bounds would leave one more running: set it to Single", target, mode)
	}
	if err := a.patch(ctx, target, want); err != nil {
		return false, explain(target, "changing", err)
	}
	return true, nil
}

// bounds are the replica bounds of an app.
type bounds struct {
	MinReplicas int64 `json:"minReplicas"`
	MaxReplicas int64 `json:"maxReplicas"`
}

// read returns the properties of an app.
func (a *Action) read(ctx context.Context, target app) (properties gjson.Result, err error) {
	answer, err := a.send(ctx, http.MethodGet, target, nil, http.StatusOK)
	if err != nil {
		return properties, err
	}
	body, err := runtime.Payload(answer)
	if err == nil && !gjson.ValidBytes(body) {
		err = errors.New("the answer of Azure Resource Manager is no JSON")
	}
	return gjson.GetBytes(body, "properties"), err
}

// patch changes the bounds, and waits until the long-running operation is complete. A null suffix lets the
// service name the new revision: with the suffix of the old one it would refuse it.
func (a *Action) patch(ctx context.Context, target app, want bounds) error {
	type object = map[string]any
	change := object{"properties": object{"template": object{"revisionSuffix": nil, "scale": want}}}
	answer, err := a.send(ctx, http.MethodPatch, target, change, http.StatusOK, http.StatusAccepted)
	if err != nil {
		return err
	}
	poller, err := runtime.NewPoller[json.RawMessage](answer, a.client.Pipeline(), nil)
	if err != nil {
		return err
	}
	_, err = poller.PollUntilDone(ctx, &runtime.PollUntilDoneOptions{Frequency: pollInterval})
	return err
}

// send sends a request about an app. Any status but those expected is an error.
func (a *Action) send(ctx context.Context, method string, target app, body any, expected ...int) (*http.Response, error) {
	request, err := runtime.NewRequest(ctx, method, a.client.Endpoint()+target.id+"?api-version="+apiVersion)
	if err == nil && body != nil {
		err = runtime.MarshalAsJSON(request, body)
	}
	if err != nil {
		return nil, err
	}
	request.Raw().Header.Set("Accept", "application/json")
	answer, err := a.client.Pipeline().Do(request)
	if err == nil && !runtime.HasStatusCode(answer, expected...) {
		err = runtime.NewResponseError(answer)
	}
	return answer, err
}

// explain returns an error that says in one line what failed about an app and what to do.
func explain(target app, doing string, err error) error {
	answer, isAnswer := errors.AsType[*azcore.ResponseError](err)
	if !isAnswer || answer.RawResponse == nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%s %s took too long: see its revisions in the portal, and that Azure Resource Manager can be reached: %w", doing, target, err)
		}
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = fmt.Errorf("no answer from Azure Resource Manager: %w", request.Err)
		}
		return fmt.Errorf("%s %s: %w", doing, target, err)
	}
	status := fmt.Sprintf("%d %s", answer.StatusCode, cmp.Or(answer.ErrorCode, http.StatusText(answer.StatusCode)))
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s %s: the identity may not do this (%s): give it the role Container Apps Contributor there, or Microsoft.App/containerApps/read and /write", doing, target, status)
	case http.StatusNotFound:
		return fmt.Errorf("%s %s: it does not exist (%s): correct the target labels of the processor", doing, target, status)
	case http.StatusConflict:
		return fmt.Errorf("%s %s: another change of it is under way (%s)", doing, target, status)
	}
	body, _ := runtime.Payload(answer.RawResponse) // without it, the status says enough
	if words := refusal.Words(gjson.GetBytes(body, "error.message").Str); words != "" {
		status += ": " + words
	}
	return fmt.Errorf("%s %s: Azure Resource Manager answered %s", doing, target, status)
}
