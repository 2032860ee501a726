package actions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/events"
)

// scripted is an Action whose answer a test sets.
type scripted struct{ err error }

func (s *scripted) Target(e events.ScaleEvent) (string, error) {
	return e.Data.Target["deployment"], nil
}

func (s *scripted) Act(context.Context, events.ScaleEvent) (bool, error) { return s.err == nil, s.err }

func TestATargetThatIsLeftAloneIsSettledAndSaidOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	action := &scripted{}
	h := &actions.Handler{Action: action, Log: slog.New(slog.NewTextHandler(&log, nil))}
	rival := func(name string) error { return fmt.Errorf("%w for %s", actions.ErrRival, name) }
	for i, step := range []struct {
		rule       string
		deployment string
		err        error
		logs       string // "" = nothing
	}{
		{"it is said", "orders", rival("hpa-1"), `msg="left alone" processor=orders sequence=7 desiredReplicas=5 target=orders error="left alone for hpa-1"`},
		{"once", "orders", rival("hpa-1"), ""},
		{"another target is another matter", "payments", rival("hpa-1"), "target=payments"},
		{"so is another rival", "orders", rival("hpa-2"), "hpa-2"},
		{"what is mended is acted upon", "orders", nil, `msg=acted`},
		{"and said again where it comes back", "orders", rival("hpa-2"), "hpa-2"},
		{"the other target was not", "payments", rival("hpa-1"), ""},
	} {
		log.Reset()
		action.err = step.err
		e := events.ScaleEvent{Data: events.Data{Processor: "orders", Sequence: 7, DesiredReplicas: 5, Target: map[string]string{"deployment": step.deployment}}}
		if err := h.Handle(t.Context(), e); err != nil {
			t.Errorf("%d, %s: %v; want it settled", i, step.rule, err)
		}
		if got := log.String(); (step.logs == "") != (got == "") || !strings.Contains(got, step.logs) {
			t.Errorf("%d, %s: it logged %q, want %q", i, step.rule, got, step.logs)
		}
	}
	action.err = errors.New("the cluster is away")
	if err := h.Handle(t.Context(), events.ScaleEvent{}); !errors.Is(err, action.err) {
		t.Errorf("another error: %v; want it returned", err)
	}
}

func TestTheLogNamesAGroupAsSuch(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := &actions.Handler{Action: &scripted{}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	e := events.ScaleEvent{Data: events.Data{Group: "shop-workers", Sequence: 7, DesiredReplicas: 5}}
	if err := h.Handle(t.Context(), e); err != nil || !strings.Contains(log.String(), "msg=acted group=shop-workers sequence=7 desiredReplicas=5") {
		t.Errorf("%v, it logged %s", err, &log)
	}
}
