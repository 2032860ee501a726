package config_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
)

const minimal = `
processors:
- name: orders
  connection: COSMOS
  databaseId: shop
  containerId: orders
`

func TestMinimalProcessorGetsEveryDefault(t *testing.T) {
	t.Parallel()
	cosmos, err := config.ParseCosmosConnection(testLookup(), "COSMOS")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Processor{
		Name:             "orders",
		Connection:       cosmos,
		DatabaseID:       "shop",
		ContainerID:      "orders",
		LeaseConnection:  cosmos,
		LeaseDatabaseID:  "shop",
		LeaseContainerID: "leases",
		NamesInUse:       []string{""},
		AccountHost:      "shop.documents.azure.com",
		Policy: scaling.Policy{
			Threshold:      100,
			Sizing:         scaling.SizingAuto,
			CatchUpWithin:  90 * time.Second,
			ExcludeStalled: true,
			Cooldown:       300 * time.Second,
			Health:         health.Policy{StalledAfter: 5 * time.Minute, StalledPolls: 2, LeaseExpiration: 60 * time.Second},
			Behavior: scaling.Behavior{
				ScaleUp:   scaling.Rules{SelectPolicy: scaling.SelectMax},
				ScaleDown: scaling.Rules{SelectPolicy: scaling.SelectMax, StabilizationWindow: 5 * time.Minute},
			},
			Fallback: scaling.Fallback{FailureThreshold: 3, Behavior: scaling.FallbackMax},
		},
		Throughput: config.Throughput{Mode: config.ThroughputOff, ScaleDownAfter: time.Hour},
		Target:     map[string]string{},
	}
	got := load(t, minimal)
	if len(got) != 1 {
		t.Fatalf("got %d processors, want 1", len(got))
	}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("got  %+v\nwant %+v", got[0], want)
	}
	if !got[0].Schedule.IsZero() || !got[0].IdleSchedule.IsZero() {
		t.Error("a processor without a schedule is not polled at every tick")
	}
}

func TestEveryFieldIsReadAndOverridesDefaults(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/every-field.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, string(text))[0]
	eight := 8
	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	floors := p.Policy.Schedules
	if len(floors) != 1 {
		t.Fatalf("got %d schedules, want 1", len(floors))
	}
	want := scaling.Policy{
		Threshold: 50, Activation: 5, LimitToPartitionsWithLag: true, EvenPartitions: true, MaxLeasesPerReplica: 4, ExcludeStalled: true,
		Sizing:       scaling.SizingAuto,
		MaxChangeAge: 2 * time.Minute, CatchUpWithin: 90 * time.Minute,
		MinReplicas: 1, MaxReplicas: &eight,
		Cooldown: 2 * time.Minute, Health: health.Policy{StalledAfter: 5 * time.Minute, StalledPolls: 4, LeaseExpiration: 90 * time.Second, Retention: 168 * time.Hour},
		Behavior: scaling.Behavior{
			ScaleUp: scaling.Rules{
				StabilizationWindow: 30 * time.Second, SelectPolicy: scaling.SelectMin, Tolerance: 0.1,
				Policies: []scaling.RatePolicy{
					{Type: scaling.RatePods, Value: 4, Period: time.Minute},
					{Type: scaling.RatePercent, Value: 100, Period: 30 * time.Minute},
				},
			},
			ScaleDown: scaling.Rules{StabilizationWindow: 10 * time.Minute, SelectPolicy: scaling.SelectDisabled},
		},
		Fallback: scaling.Fallback{FailureThreshold: 5, Behavior: scaling.FallbackStatic, Replicas: 6},
		Schedules: []scaling.Schedule{
			{Location: london, Start: floors[0].Start, End: floors[0].End, DesiredReplicas: 4},
		},
		Paused: true,
	}
	if !reflect.DeepEqual(p.Policy, want) {
		t.Errorf("policy:\ngot  %+v\nwant %+v", p.Policy, want)
	}
	monday := time.Date(2026, 7, 6, 0, 0, 0, 0, london)
	if got, want := floors[0].Start.Next(monday), time.Date(2026, 7, 6, 6, 0, 0, 0, london); !got.Equal(want) {
		t.Errorf("floor starts at %v, want %v", got, want)
	}
	if got, want := floors[0].End.Next(monday), time.Date(2026, 7, 6, 20, 0, 0, 0, london); !got.Equal(want) {
		t.Errorf("floor ends at %v, want %v", got, want)
	}
	for _, c := range []struct{ field, got, want string }{
		{"name", p.Name, "orders"},
		{"group", p.Group, "shop-workers"},
		{"connection", p.Connection.Setting, "COSMOS"},
		{"leaseConnection", p.LeaseConnection.Setting, "LEASES"},
		{"leaseDatabaseId", p.LeaseDatabaseID, "shop-leases"},
		{"leaseContainerId", p.LeaseContainerID, "orders-leases"},
		{"processorName", p.ProcessorName, "projection"},
		{"accountHost", p.AccountHost, "Shop.documents.azure.com"},
		{"leaseFormat", string(p.LeaseFormat), "java"},
		{"schedule", p.Schedule.String(), "0 */5 * * * *"},
		{"idleSchedule", p.IdleSchedule.String(), "0 0 * * * *"},
		{"startFrom", p.StartFrom.Time.Format(time.RFC3339), "2026-01-01T00:00:00Z"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.field, c.got, c.want)
		}
	}
	if want := (config.Throughput{Mode: config.ThroughputApply, ScaleDownAfter: 90 * time.Minute, Containers: []config.ThroughputContainer{
		{Connection: p.Connection, DatabaseID: "shop", ContainerID: "orders", Min: 1000, Max: 4000, RUPerReplica: 250},
		{Connection: p.Connection, DatabaseID: "views", Max: 10_000},
	}}); !reflect.DeepEqual(p.Throughput, want) {
		t.Errorf("throughput:\ngot  %+v\nwant %+v", p.Throughput, want)
	}
	// Labels merge one by one; an empty one takes the inherited label away.
	if want := map[string]string{"namespace": "shop", "deployment": "orders"}; !reflect.DeepEqual(p.Target, want) {
		t.Errorf("target: got %v, want %v", p.Target, want)
	}
}

func TestDocumentForms(t *testing.T) {
	t.Parallel()
	want := load(t, minimal)
	for _, c := range []struct{ name, text string }{
		{"JSON is a document", `{"processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`},
		{"JSON may be indented with tabs", "{\n\t\"processors\": [\n\t\t{\"name\": \"orders\", \"connection\": \"COSMOS\",\n\t\t\"databaseId\": \"shop\", \"containerId\": \"orders\"}\n\t]\n}"},
		{"lines may end as on Windows", "processors:\r\n- name: orders\r\n  connection: COSMOS\r\n  databaseId: shop\r\n  containerId: orders\r\n"},
		{"a byte order mark is no mistake", "\ufeff" + minimal},
		{"required fields may come from defaults", `
defaults: {connection: COSMOS, databaseId: shop, containerId: orders}
processors: [{name: orders}]`},
		{"an empty field is as good as none", minimal + `  maxReplicaCount:
  accountHost:
  schedule: ""
  behavior:
  target: {}
`},
		{"empty defaults are as good as none", "defaults:\n" + minimal},
		{"an empty field takes the default away", "defaults: {maxReplicaCount: 5, behavior: {scaleDown: {tolerance: 0.5}}}" + minimal + `  maxReplicaCount:
  behavior:
`},
		{"a merge key brings fields in, and what stands beside it counts more", `
defaults: &base {connection: COSMOS, databaseId: shop, containerId: nothing}
processors:
- <<: *base
  name: orders
  containerId: orders`},
		{"of several merged objects the first counts", `
defaults: {behavior: &a {scaleUp: {}}, target: &b {}}
processors:
- <<: [{connection: COSMOS, databaseId: shop}, {databaseId: other, containerId: orders}]
  name: orders`},
		{"an alias stands for its value", `
processors:
- {name: &n orders, connection: COSMOS, databaseId: shop, containerId: *n}`},
		{"whole numbers may be written with a fraction of zero", minimal + "  changeFeedLagThreshold: 100.0\n  cooldownPeriod: 3e2\n"},
		{"a duration is a text or whole seconds", minimal + "  cooldownPeriod: 300\n  leaseExpiration: 1m0s\n  stalledAfter: 300s\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := load(t, c.text); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestJSONMayHaveEveryEscape(t *testing.T) {
	t.Parallel()
	p := load(t, `{"processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders", "target":
		{"solidus": "a\/b\\/c", "pair": "\ud83d\ude00\u00e9", "quote": "\"\\", "control": "\b\f\n\r\t"}}]}`)[0]
	want := map[string]string{"solidus": `a/b\/c`, "pair": "\U0001f600é", "quote": `"\`, "control": "\b\f\n\r\t"}
	if !reflect.DeepEqual(p.Target, want) {
		t.Errorf("got %q, want %q", p.Target, want)
	}
}

func TestProcessorsKeepTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	processors := load(t, `
defaults: {connection: COSMOS, databaseId: shop, containerId: orders}
processors: [{name: zebra, processorName: z}, {name: ant, processorName: a}, {name: "42"}]`)
	var got []string
	for _, p := range processors {
		got = append(got, p.Name)
	}
	if want := []string{"zebra", "ant", "42"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDefaultsMergeFieldByFieldAtEveryDepth(t *testing.T) {
	t.Parallel()
	p := load(t, `
defaults:
  connection: COSMOS
  databaseId: shop
  containerId: orders
  fallback: {failureThreshold: 5, behavior: static, replicas: 2}
  behavior:
    scaleUp: {tolerance: 0.2, policies: [{type: Pods, value: 1, periodSeconds: 60}, {type: Pods, value: 2, periodSeconds: 60}]}
  schedules: [{timezone: UTC, start: 0 6 * * *, end: 0 7 * * *, desiredReplicas: 1}]
processors:
- name: orders
  fallback: {behavior: max}
  behavior:
    scaleUp: {policies: [{type: Percent, value: 3, periodSeconds: 60}]}
  schedules: []
`)[0].Policy
	if want := (scaling.Fallback{FailureThreshold: 5, Behavior: scaling.FallbackMax}); p.Fallback != want {
		t.Errorf("fallback: got %+v, want %+v", p.Fallback, want)
	}
	up := p.Behavior.ScaleUp
	if up.Tolerance != 0.2 {
		t.Errorf("the tolerance beside overridden policies: got %v, want 0.2", up.Tolerance)
	}
	if len(up.Policies) != 1 || up.Policies[0].Type != scaling.RatePercent {
		t.Errorf("a list replaces the default whole: got %+v", up.Policies)
	}
	if len(p.Schedules) != 0 {
		t.Errorf("an empty list replaces the default: got %+v", p.Schedules)
	}
}

func TestFallbackReplicasAreAcceptedWithEveryBehavior(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fallback string
		want     scaling.Fallback
	}{
		{"{replicas: 6}", scaling.Fallback{FailureThreshold: 3, Behavior: scaling.FallbackMax}},
		{"{failureThreshold: 0, behavior: max, replicas: 6}", scaling.Fallback{Behavior: scaling.FallbackMax}},
		{"{behavior: currentReplicas, replicas: 6}", scaling.Fallback{FailureThreshold: 3, Behavior: scaling.FallbackCurrent}},
		{"{behavior: static, replicas: 6}", scaling.Fallback{FailureThreshold: 3, Behavior: scaling.FallbackStatic, Replicas: 6}},
		{"{behavior: currentReplicasIfHigher, replicas: 6}", scaling.Fallback{FailureThreshold: 3, Behavior: scaling.FallbackCurrentIfHigher, Replicas: 6}},
		{"{behavior: currentReplicasIfLower, replicas: 6}", scaling.Fallback{FailureThreshold: 3, Behavior: scaling.FallbackCurrentIfLower, Replicas: 6}},
	} {
		t.Run(c.fallback, func(t *testing.T) {
			t.Parallel()
			if got := load(t, minimal+"  fallback: "+c.fallback+"\n")[0].Policy.Fallback; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestStartFrom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value string
		want        changefeed.StartFrom
	}{
		{"now", "now", changefeed.StartFrom{}},
		{"beginning", "beginning", changefeed.StartFrom{Beginning: true}},
		{"a time", "2026-02-03T04:05:06Z", changefeed.StartFrom{Time: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}},
		{"a time in quotes", `"2026-02-03T04:05:06Z"`, changefeed.StartFrom{Time: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}},
		{"the year 1 is the beginning", "0001-01-01T00:00:00Z", changefeed.StartFrom{Beginning: true}},
		{"the year 1 in quotes", `"0001-01-01T00:00:00Z"`, changefeed.StartFrom{Beginning: true}},
		{"the year 1 east of Greenwich", "0001-01-01T00:00:00+01:00", changefeed.StartFrom{Beginning: true}},
		{"1970 is a time", "1970-01-01T00:00:00Z", changefeed.StartFrom{Time: time.Unix(0, 0)}},
		{"a time with an offset", "2026-02-03T05:05:06+01:00", changefeed.StartFrom{Time: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := load(t, minimal+"  startFrom: "+c.value+"\n")[0].StartFrom
			if got.Now() != c.want.Now() || got.Beginning != c.want.Beginning || !got.Time.Equal(c.want.Time) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	got := loadDocument(t, `
defaults: {connection: COSMOS, databaseId: shop, target: {namespace: shop}, group: shop-workers}
groups:
- {name: shop-workers, minReplicaCount: 1, maxReplicaCount: 20, target: {deployment: shop-workers}}
- {name: bare}
processors:
- {name: orders, containerId: orders}
- {name: payments, containerId: payments, target: {deployment: shop-workers}}
- {name: alone, containerId: alone, group: }
- {name: free, containerId: free, group: ""}
- {name: member, containerId: member, group: bare}
`)
	twenty := 20
	want := []config.Group{
		{Name: "shop-workers", Policy: scaling.GroupPolicy{MinReplicas: 1, MaxReplicas: &twenty}, Target: map[string]string{"deployment": "shop-workers"}},
		{Name: "bare", Target: map[string]string{}},
	}
	if !reflect.DeepEqual(got.Groups, want) {
		t.Errorf("got  %+v\nwant %+v", got.Groups, want)
	}
	var groups []string
	for _, p := range got.Processors {
		groups = append(groups, p.Group)
	}
	if want := []string{"shop-workers", "shop-workers", "", "", "bare"}; !reflect.DeepEqual(groups, want) {
		t.Errorf("got %q, want %q", groups, want)
	}
}

// TestTargetsThatNameTheSameThing: two processors without a group, each with one of the targets.
func TestTargetsThatNameTheSameThing(t *testing.T) {
	t.Parallel()
	const id = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/shop/providers/Microsoft.App/containerApps/orders"
	for _, c := range []struct {
		rule, first, second string
		what                string // "" = they do not
	}{
		{"no label names anything", "{}", "{}", ""},
		{"labels that no action reads", "{team: a}", "{team: a}", ""},
		{"a namespace alone", "{namespace: shop}", "{namespace: shop}", ""},
		{"a deployment", "{deployment: orders}", "{deployment: orders}", "Deployment"},
		{"two deployments", "{deployment: orders}", "{deployment: payments}", ""},
		{"one name in two namespaces", "{deployment: orders, namespace: a}", "{deployment: orders, namespace: b}", ""},
		{"a deployment and a stateful set", "{deployment: orders}", "{statefulset: orders}", ""},
		{"a stateful set", "{statefulset: orders}", "{statefulset: orders}", "StatefulSet"},
		{"a deployment in either spelling", "{deployment: orders}", "{apiVersion: apps/v1, kind: Deployment, name: orders}", "Deployment"},
		{"whatever the version", "{apiVersion: argoproj.io/v1, kind: Rollout, name: orders}", "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: orders}", "Rollout"},
		{"two kinds of a name", "{apiVersion: a.io/v1, kind: Rollout, name: orders}", "{apiVersion: b.io/v1, kind: Rollout, name: orders}", ""},
		{"both labels, which the action refuses", "{deployment: orders, statefulset: orders}", "{deployment: orders, statefulset: orders}", ""},
		{"a container app", "{containerAppId: " + id + "}", "{containerAppId: " + strings.ToUpper(id) + "}", "container app"},
		{"in either spelling", "{containerAppId: " + id + "}", "{subscriptionId: 00000000-0000-0000-0000-000000000000, resourceGroup: Shop, containerApp: orders}", "container app"},
		{"a name in two resource groups", "{resourceGroup: a, containerApp: orders}", "{resourceGroup: b, containerApp: orders}", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			list := mistakes(t, `
defaults: {connection: COSMOS, databaseId: shop}
processors:
- {name: first, containerId: first, target: `+c.first+`}
- {name: second, containerId: second, target: `+c.second+`}
`)
			if c.what == "" {
				if len(list) > 0 {
					t.Errorf("got %v", list)
				}
				return
			}
			want := "processors.yaml:5: processors[1] (second).target: names the same " + c.what + " as the target of first, on line 4; allowed is a target of its own, " +
				"or one group that holds both, as in groups: [{name: shop-workers, target: {deployment: shop-workers}}]"
			if len(list) != 1 || list[0].String() != want {
				t.Errorf("got  %v\nwant %s", list, want)
			}
		})
	}
}

// TestSizingByThresholdHasTheDefaultsOfKEDA: what is a default because the rates are known is none there.
func TestSizingByThresholdHasTheDefaultsOfKEDA(t *testing.T) {
	t.Parallel()
	p := load(t, strings.Replace(minimal, "name: orders", "name: orders\n  sizing: threshold", 1))[0].Policy
	if p.Sizing != scaling.SizingThreshold || p.CatchUpWithin != 0 || p.ExcludeStalled || p.Behavior.ScaleDown.StabilizationWindow != 300*time.Second {
		t.Errorf("got %+v", p)
	}
}
