package kubernetes_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/kubernetes"
	"github.com/feedscale/feedscale/pkg/events"
)

// looking is an action, and its log.
func (s *apiServer) looking() (*kubernetes.Action, *bytes.Buffer) {
	s.t.Helper()
	var log bytes.Buffer
	a, err := kubernetes.New(kubernetes.Options{Kubeconfig: s.kubeconfig(token), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		s.t.Fatal(err)
	}
	return a, &log
}

// asked counts the requests for a path, with its method.
func (s *apiServer) asked(request string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r == request {
			n++
		}
	}
	return n
}

func TestWhatSomethingElseScalesIsLeftAlone(t *testing.T) {
	t.Parallel()
	paused := strings.Replace(ordersScaledObject, "namespace: staging", `namespace: staging, annotations: {autoscaling.keda.sh/paused: "true"}`, 1)
	asking := strings.Replace(ordersScaledObject, `{type: cpu, metadata: {value: "50"}}`, "{type: metrics-api, metadata: {url: 'https://app.azurewebsites.net/api/processors/orders', valueLocation: desiredReplicas}}", 1)
	for _, c := range []struct {
		rule                string
		hpas, scaledObjects []string
		desired             int
		says                string // why it is left alone; "" = it is set
	}{
		{"an HPA", []string{ordersHPA}, nil, 5, "left alone, since it has its replicas from HPA orders-cpu, and each would undo the other's changes for ever: kubectl delete hpa orders-cpu -n staging, or have no consumer act on it"},
		{"a ScaledObject", nil, []string{ordersScaledObject}, 5, "from ScaledObject orders-so, and"},
		{"one that asks feedscale: choose one way", nil, []string{asking}, 5, "from ScaledObject orders-so, and"},
		{"both", []string{ordersHPA}, []string{ordersScaledObject}, 5, "from ScaledObject orders-so and HPA orders-cpu, and"},
		{"to zero as well", []string{ordersHPA}, nil, 0, "from HPA orders-cpu, and"},
		{"a paused ScaledObject sets nothing", nil, []string{paused}, 5, ""},
		{"an HPA of something else", []string{strings.Replace(ordersHPA, "name: orders}", "name: payments}", 1)}, nil, 5, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.keda = true
			s.add(ordersPath, 1)
			s.has(hpasPath, c.hpas...)
			s.has(scaledObjectsPath, c.scaledObjects...)
			a, log := s.looking()
			changed, err := a.Act(t.Context(), orders(c.desired))
			switch {
			case c.says == "" && (err != nil || !changed || s.replicas(ordersPath) != c.desired):
				t.Errorf("changed %v, %v, %d replicas", changed, err, s.replicas(ordersPath))
			case c.says != "" && (changed || !errors.Is(err, actions.ErrRival) || errors.Is(err, events.ErrDeadLetter) || !strings.Contains(err.Error(), c.says) || s.replicas(ordersPath) != 1):
				t.Errorf("changed %v, got %v, want %s; %d replicas", changed, err, c.says, s.replicas(ordersPath))
			}
			if log.Len() > 0 {
				t.Errorf("it logged %s", log)
			}
		})
	}
}

func TestReplicasThatAreRightAlreadyAreNoReasonToLookForRivals(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.add(ordersPath, 5)
	s.has(hpasPath, ordersHPA)
	a, _ := s.looking()
	if changed, err := a.Act(t.Context(), orders(5)); err != nil || changed || s.asked("GET "+hpasPath) != 0 {
		t.Errorf("changed %v, %v, %q", changed, err, s.requests)
	}
}

func TestARivalThatIsTakenAwayIsNoticedAtTheNextEvent(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.add(ordersPath, 1)
	s.has(hpasPath, ordersHPA)
	a, _ := s.looking()
	if _, err := a.Act(t.Context(), orders(5)); !errors.Is(err, actions.ErrRival) {
		t.Fatalf("got %v", err)
	}
	s.mu.Lock()
	delete(s.lists, hpasPath)
	s.mu.Unlock()
	if changed, err := a.Act(t.Context(), orders(5)); err != nil || !changed {
		t.Errorf("changed %v, %v", changed, err)
	}
}

func TestWhereItMayNotLookItSaysSoOnceAndActs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, unlisted, path, object, says string
	}{
		{"HPAs", "horizontalpodautoscalers", hpasPath, ordersHPA, `bind this account to a role with the verb list on horizontalpodautoscalers in apiGroup \"autoscaling\"`},
		{"ScaledObjects", "scaledobjects", scaledObjectsPath, ordersScaledObject, `bind this account to a role with the verb list on scaledobjects in apiGroup \"keda.sh\"`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.keda, s.unlisted[c.unlisted] = true, true
			s.add(ordersPath, 1)
			s.has(c.path, c.object)
			a, log := s.looking()
			for _, replicas := range []int{5, 6, 7} {
				if changed, err := a.Act(t.Context(), orders(replicas)); err != nil || !changed || s.replicas(ordersPath) != replicas {
					t.Errorf("changed %v, %v, %d replicas", changed, err, s.replicas(ordersPath))
				}
			}
			if strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), c.says) || !strings.Contains(log.String(), "namespace=staging") {
				t.Errorf("the log says %s", log)
			}
		})
	}
}

func TestAnHPAThatIsSeenCountsWhereScaledObjectsAreNot(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.unlisted["scaledobjects"] = true
	s.add(ordersPath, 1)
	s.has(hpasPath, ordersHPA)
	a, log := s.looking()
	if _, err := a.Act(t.Context(), orders(5)); !errors.Is(err, actions.ErrRival) || !strings.Contains(log.String(), "scaledobjects") {
		t.Errorf("got %v, and the log says %s", err, log)
	}
}

func TestARefusalOfTheScaleIsToldWhateverElseScales(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.add(ordersPath, 1)
	s.has(hpasPath, ordersHPA)
	s.refuse[http.MethodGet] = http.StatusForbidden
	a, _ := s.looking()
	if _, err := a.Act(t.Context(), orders(5)); err == nil || errors.Is(err, actions.ErrRival) || s.asked("GET "+hpasPath) != 0 {
		t.Errorf("got %v", err)
	}
}
