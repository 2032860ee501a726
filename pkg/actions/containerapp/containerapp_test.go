package containerapp_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/feedscale/feedscale/pkg/actions/containerapp"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/events"
)

const (
	image  = `"containers":[{"name":"orders","image":"shop/orders:1"}],"revisionSuffix":"v1"`
	single = `{"activeRevisionsMode":"Single","secrets":[{"name":"cosmos"}]}`
)

// wanting is an event for the app orders with a number of desired replicas.
func wanting(replicas int) events.ScaleEvent {
	return events.ScaleEvent{Data: events.Data{Processor: "orders", DesiredReplicas: replicas, Target: map[string]string{"containerAppId": ordersID}}}
}

func (m *manager) options() containerapp.Options {
	return containerapp.Options{
		Endpoint: m.URL,
		Client:   policy.ClientOptions{Transport: bounded.Client(bounded.Bodies(m.Client().Transport)), Retry: policy.RetryOptions{RetryDelay: time.Millisecond}},
	}
}

func newAction(t *testing.T, identity azcore.TokenCredential, o containerapp.Options) *containerapp.Action {
	t.Helper()
	a, err := containerapp.New(identity, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTheBoundsArePinnedToTheDesiredReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		template string
		replicas int
		patch    string // "" = none
	}{
		{"both bounds are the desired replicas", `{` + image + `,"scale":{"minReplicas":1,"maxReplicas":10}}`, 5, `{"minReplicas":5,"maxReplicas":5}`},
		{"at zero the maximum is the least there is", `{` + image + `,"scale":{"minReplicas":5,"maxReplicas":5}}`, 0, `{"minReplicas":0,"maxReplicas":1}`},
		{"an app that is there already is left alone", `{` + image + `,"scale":{"minReplicas":5,"maxReplicas":5,"rules":[]}}`, 5, ""},
		{"an app at zero is left alone", `{` + image + `,"scale":{"maxReplicas":1}}`, 0, ""},
		{"no minimum is 0", `{` + image + `,"scale":{"minReplicas":null,"maxReplicas":1}}`, 1, `{"minReplicas":1,"maxReplicas":1}`},
		{"no maximum is 10", `{` + image + `,"scale":{"minReplicas":10}}`, 10, ""},
		{"no scale at all is 0 to 10", `{` + image + `,"scale":null}`, 0, `{"minReplicas":0,"maxReplicas":1}`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			m := newManager(t)
			m.add(c.template, single)
			m.polls = 2
			changed, err := newAction(t, identity{}, m.options()).Act(t.Context(), wanting(c.replicas))
			if err != nil {
				t.Fatal(err)
			}
			if changed != (c.patch != "") {
				t.Errorf("changed is %v", changed)
			}
			if c.patch == "" {
				if len(m.patches) != 0 {
					t.Errorf("patched with %s", m.patches)
				}
				return
			}
			if want := []string{`{"properties":{"template":{"revisionSuffix":null,"scale":` + c.patch + `}}}`}; !reflect.DeepEqual(m.patches, want) {
				t.Errorf("got %s, want %s", m.patches, want)
			}
			if m.polls != -1 {
				t.Errorf("it was not waited for to the end: %d polls are left", m.polls+1)
			}
		})
	}
}

func TestNothingElseOfTheAppChangesAndASecondEventChangesNothing(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	m.add(`{`+image+`,"scale":{"minReplicas":1,"maxReplicas":3,"rules":[{"name":"lag"}]}}`, single)
	a := newAction(t, identity{}, m.options())
	for i, want := range []bool{true, false} {
		changed, err := a.Act(t.Context(), wanting(2))
		if err != nil || changed != want {
			t.Errorf("event %d: changed %v, %v", i+1, changed, err)
		}
	}
	if got, want := m.bounds(), (map[string]any{"minReplicas": 2.0, "maxReplicas": 2.0, "rules": []any{map[string]any{"name": "lag"}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if m.revisions != 1 {
		t.Errorf("%d new revisions, want 1", m.revisions)
	}
}

func TestAnOperationThatIsFoundByItsLocationIsWaitedFor(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	m.add(`{`+image+`}`, single)
	m.header, m.polls = "Location", 3
	changed, err := newAction(t, identity{}, m.options()).Act(t.Context(), wanting(2))
	if err != nil || !changed || m.polls != -1 {
		t.Errorf("changed %v, %v, %d polls are left", changed, err, m.polls+1)
	}
}

func TestBoundsOfAChangeThatFailedAreSentAgain(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	m.add(`{`+image+`,"scale":{"minReplicas":2,"maxReplicas":2}}`, single)
	m.provisioning("Failed")
	changed, err := newAction(t, identity{}, m.options()).Act(t.Context(), wanting(2))
	if err != nil || !changed || len(m.patches) != 1 {
		t.Errorf("changed %v, %v, %d patches", changed, err, len(m.patches))
	}
}

func TestAChangeToTheSameBoundsThatIsUnderWayIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		outcome string // of the change
		patches int
	}{
		{"one that succeeds is all there is to do", "Succeeded", 0},
		{"one that fails is made again", "Failed", 1},
		{"one that is canceled is made again", "Canceled", 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			m := newManager(t)
			m.add(`{`+image+`,"scale":{"minReplicas":2,"maxReplicas":2}}`, single)
			m.provisioning("InProgress")
			a := newAction(t, identity{}, m.options())
			_, err := a.Act(t.Context(), wanting(2))
			if err == nil || errors.Is(err, events.ErrDeadLetter) || !strings.Contains(err.Error(), "a change of container app orders in resource group shop to these bounds is under way") || len(m.patches) != 0 {
				t.Errorf("%v, %d patches", err, len(m.patches))
			}
			m.provisioning(c.outcome)
			if changed, err := a.Act(t.Context(), wanting(2)); err != nil || changed != (c.patches > 0) || len(m.patches) != c.patches {
				t.Errorf("changed %v, %v, %q", changed, err, m.requests)
			}
		})
	}
}

func TestAnAppWithSeveralActiveRevisionsIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	m.add(`{`+image+`}`, `{"activeRevisionsMode":"Multiple"}`)
	_, err := newAction(t, identity{}, m.options()).Act(t.Context(), wanting(2))
	if err == nil || !strings.Contains(err.Error(), "activeRevisionsMode Multiple") || len(m.patches) != 0 {
		t.Errorf("%v, %d patches", err, len(m.patches))
	}
}

func TestWhatIsRefusedIsOneLineThatSaysWhatToDoAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		script []scripted
		failed string
		want   string
	}{
		{"no right to read", []scripted{refused(403, "AuthorizationFailed", "The client does not have authorization.")}, "",
			"reading container app orders in resource group shop: the identity may not do this (403 AuthorizationFailed): give it the role Container Apps Contributor there, or Microsoft.App/containerApps/read and /write"},
		{"an app that is not there", []scripted{refused(404, "ResourceNotFound", "The Resource was not found.")}, "",
			"reading container app orders in resource group shop: it does not exist (404 ResourceNotFound): correct the target labels of the processor"},
		{"an answer of nobody that is known", []scripted{{502, "<html>"}, {502, "<html>"}, {502, "<html>"}, {502, "<html>"}}, "",
			"reading container app orders in resource group shop: Azure Resource Manager answered 502 Bad Gateway"},
		{"another change under way", []scripted{{200, `{"properties":{}}`}, refused(409, "ContainerAppOperationInProgress", "wait")}, "",
			"changing container app orders in resource group shop: another change of it is under way (409 ContainerAppOperationInProgress)"},
		{"bounds that the service does not take", []scripted{{200, `{"properties":{}}`}, refused(400, "InvalidScale", "maxReplicas is\ntoo high")}, "",
			"changing container app orders in resource group shop: Azure Resource Manager answered 400 InvalidScale: maxReplicas is too high"},
		{"a change that fails in the end", nil, "RevisionFailed",
			"changing container app orders in resource group shop: Azure Resource Manager answered 200 RevisionFailed: it failed in two lines"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			m := newManager(t)
			m.add(`{`+image+`}`, single)
			m.script, m.outcome = c.script, c.failed
			changed, err := newAction(t, identity{}, m.options()).Act(t.Context(), wanting(2))
			if err == nil || changed || err.Error() != c.want || errors.Is(err, events.ErrDeadLetter) {
				t.Errorf("changed %v, got\n%v\nwant\n%s", changed, err, c.want)
			}
		})
	}
}

func TestAThrottledRequestIsMadeAgain(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	m.add(`{`+image+`}`, single)
	m.script = []scripted{refused(429, "TooManyRequests", "slower")}
	if _, err := newAction(t, identity{}, m.options()).Act(t.Context(), wanting(2)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"GET " + ordersID, "GET " + ordersID, "PATCH " + ordersID, "GET " + ordersID}; !reflect.DeepEqual(m.requests, want) {
		t.Errorf("got %q, want %q", m.requests, want)
	}
}

func TestAChangeThatDoesNotEndIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	m.add(`{`+image+`}`, single)
	m.polls = 1 << 30
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := newAction(t, identity{}, m.options()).Act(ctx, wanting(2))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "changing container app orders in resource group shop took too long") {
		t.Errorf("got %v", err)
	}
}

// noIdentity is a credential that has no token.
type noIdentity struct{}

var errNoIdentity = errors.New("no managed identity here")

func (noIdentity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errNoIdentity
}

func TestWithoutATokenNothingIsAsked(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	_, err := newAction(t, noIdentity{}, m.options()).Act(t.Context(), wanting(2))
	if !errors.Is(err, errNoIdentity) || !strings.Contains(err.Error(), "reading container app orders") || len(m.requests) != 0 {
		t.Errorf("%v, %q", err, m.requests)
	}
}

func TestAManagerOutOfReachIsNamed(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	o := m.options()
	o.Client.Retry.MaxRetries = -1
	m.Close()
	_, err := newAction(t, identity{}, o).Act(t.Context(), wanting(2))
	if err == nil || !strings.Contains(err.Error(), "no answer from Azure Resource Manager") || strings.Contains(err.Error(), ordersID) {
		t.Errorf("got %v", err)
	}
}

// asked is a transport and an identity that record what they were asked for.
type asked struct{ url, scope string }

var errAsked = errors.New("asked")

func (a *asked) Do(r *http.Request) (*http.Response, error) {
	a.url = r.URL.String()
	return nil, errAsked
}

func (a *asked) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	a.scope = strings.Join(o.Scopes, " ")
	return azcore.AccessToken{Token: "t", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func TestTheEndpointOfEachCloudIsTheAudienceOfItsTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, endpoint, want string }{
		{"the public cloud is the default", "", "https://management.azure.com"},
		{"the public cloud by its endpoint", "https://management.azure.com/", "https://management.azure.com"},
		{"Azure Government", "https://management.usgovcloudapi.net", "https://management.usgovcloudapi.net"},
		{"Azure China", "https://management.chinacloudapi.cn", "https://management.chinacloudapi.cn"},
		{"another", "https://management.local.azurestack.external/", "https://management.local.azurestack.external"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var got asked
			o := containerapp.Options{Endpoint: c.endpoint, Client: policy.ClientOptions{Transport: &got, Retry: policy.RetryOptions{MaxRetries: -1}}}
			if _, err := newAction(t, &got, o).Act(t.Context(), wanting(1)); !errors.Is(err, errAsked) {
				t.Fatal(err)
			}
			if want := (asked{c.want + ordersID + "?api-version=" + apiVersion, c.want + "/.default"}); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
