package kubernetes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/events"
)

func TestATargetThatNamesNothingToScaleIsDeadLettered(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	a := s.action("")
	for _, c := range []struct {
		rule     string
		labels   map[string]string
		replicas int
		says     string
	}{
		{"no label at all", nil, 1, "target label apiVersion is missing; allowed are deployment, statefulset, or apiVersion with kind and name"},
		{"labels of somebody else", map[string]string{"containerAppId": "x"}, 1, "target label apiVersion is missing"},
		{"no kind", map[string]string{"apiVersion": "v1", "name": "orders"}, 1, "target label kind is missing"},
		{"no name", map[string]string{"apiVersion": "v1", "kind": "ReplicationController"}, 1, "target label name is missing"},
		{"an apiVersion that is none", map[string]string{"apiVersion": "a/b/c", "kind": "Worker", "name": "orders"}, 1, `target label apiVersion is "a/b/c"; allowed is VERSION or GROUP/VERSION`},
		{"two objects", map[string]string{"deployment": "orders", "statefulset": "orders"}, 1, "target labels deployment and statefulset are both there; allowed is one of them"},
		{"an empty name", map[string]string{"deployment": ""}, 1, `target label deployment is ""; allowed is the name of an object`},
		{"a name that is a path", map[string]string{"statefulset": "../orders"}, 1, `target label statefulset is "../orders"`},
		{"a name that no object can have", map[string]string{"apiVersion": "v1", "kind": "ReplicationController", "name": "Orders"}, 1, `target label name is "Orders"`},
		{"a namespace that no cluster can have", map[string]string{"deployment": "orders", "namespace": "a.b"}, 1, `target label namespace is "a.b"`},
		{"an empty namespace", map[string]string{"deployment": "orders", "namespace": ""}, 1, `target label namespace is ""`},
		{"more replicas than the API can say", map[string]string{"deployment": "orders"}, 1 << 31, "desiredReplicas is 2147483648; allowed are up to 2147483647"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			e := events.ScaleEvent{Data: events.Data{DesiredReplicas: c.replicas, Target: c.labels}}
			_, err := a.Target(e)
			if !errors.Is(err, events.ErrDeadLetter) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if _, acted := a.Act(t.Context(), e); acted == nil || acted.Error() != err.Error() {
				t.Errorf("acted upon with %v", acted)
			}
		})
	}
}
