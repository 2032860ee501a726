package config_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
)

func TestDefaultPolicyIsThatOfAProcessorWhichSetsNothing(t *testing.T) {
	t.Parallel()
	want := load(t, minimal)[0].Policy
	if got := config.DefaultPolicy(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestPoliciesInheritFromDefaultsFieldByField(t *testing.T) {
	t.Parallel()
	got, err := config.LoadPolicies("policies.yaml", []byte(`
defaults:
  every: 10s
  changeFeedLagThreshold: 50
  behavior: {scaleDown: {stabilizationWindowSeconds: 60}}
policies:
- name: inherits
- name: overrides
  every: 5
  changeFeedLagThreshold: 500
  behavior: {scaleUp: {tolerance: 0.2}}
- name: goes-back
  every:
  changeFeedLagThreshold:
  behavior:
`))
	if err != nil {
		t.Fatal(err)
	}
	inherits, overrides := config.DefaultPolicy(), config.DefaultPolicy()
	inherits.Threshold, overrides.Threshold = 50, 500
	inherits.Behavior.ScaleDown.StabilizationWindow = time.Minute
	overrides.Behavior.ScaleDown.StabilizationWindow = time.Minute
	overrides.Behavior.ScaleUp.Tolerance = 0.2
	want := []config.NamedPolicy{
		{Name: "inherits", Every: 10 * time.Second, Policy: inherits},
		{Name: "overrides", Every: 5 * time.Second, Policy: overrides},
		{Name: "goes-back", Every: 15 * time.Second, Policy: config.DefaultPolicy()},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestPoliciesMayBeJSON(t *testing.T) {
	t.Parallel()
	got, err := config.LoadPolicies("policies.json", []byte(`{"policies":[{"name":"brisk","maxChangeAge":"30s"}]}`))
	if err != nil || len(got) != 1 || got[0].Policy.MaxChangeAge != 30*time.Second {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestMistakesOfPoliciesAreListedAtOnceWithTheirPlace(t *testing.T) {
	t.Parallel()
	_, err := config.LoadPolicies("policies.yaml", []byte(`defaults:
  name: brisk
  cooldownPeriod: never
policies:
- name: keda
- name: brisk
  changefeedlagthreshold: 1
  connection: COSMOS
- name: brisk
  every: 100ms
  minReplicaCount: 4
  maxReplicaCount: 3
- changeFeedLagThreshold: 0
- slow
other: 1
`))
	var places []string
	for _, m := range asMistakes(t, err) {
		places = append(places, fmt.Sprintf("%d %s", m.Line, m.Field))
	}
	want := []string{
		"2 defaults.name",
		"3 defaults.cooldownPeriod",
		"5 policies[0] (keda).name",
		"7 policies[1] (brisk).changefeedlagthreshold",
		"8 policies[1] (brisk).connection",
		"9 policies[2] (brisk).name",
		"10 policies[2] (brisk).every",
		"11 policies[2] (brisk).minReplicaCount",
		"13 policies[3].changeFeedLagThreshold",
		"13 policies[3].name",
		"14 policies[4]",
		"15 other",
	}
	if !reflect.DeepEqual(places, want) {
		t.Errorf("got  %q\nwant %q", places, want)
	}
	contains(t, err,
		"defaults.name: is an unknown field; allowed are activationChangeFeedLagThreshold, ",
		`"never" is no duration; allowed is a duration such as 90s, 5m or 1h30m`,
		`"keda" is built in; allowed is another name`,
		"did you mean changeFeedLagThreshold?",
		"allowed are activationChangeFeedLagThreshold, behavior, catchUpWithin,",
		"brisk is the name of another entry, on line 6",
		"100ms is out of range; allowed is a duration such as 90s, 5m or 1h30m, or a whole number of seconds, from 1s to 8760h",
		"minReplicaCount is 4 and maxReplicaCount 3; allowed is a minimum up to the maximum",
	)
}

func TestAPolicyNeedsAName(t *testing.T) {
	t.Parallel()
	_, err := config.LoadPolicies("policies.yaml", []byte("policies: [{}]"))
	contains(t, err, "policies.yaml:1: policies[0].name: is missing; allowed are 1 to 63 lower-case letters")
}

func TestADocumentWithoutPoliciesIsAMistake(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "policies: []", "policies:", "defaults: {}", "{}"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, err := config.LoadPolicies("policies.yaml", []byte(text))
			if got := asMistakes(t, err); len(got) != 1 || !strings.Contains(got[0].Text, "allowed is at least one policy, as in policies: [{name: brisk") {
				t.Errorf("got %v", got)
			}
		})
	}
}
