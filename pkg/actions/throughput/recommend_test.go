package throughput_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/state"
)

// TestARecommendationIsWhatIsNeededNowAndApplyKeepsItForLonger goes through a burst twice, in two processes each.
func TestARecommendationIsWhatIsNeededNowAndApplyKeepsItForLonger(t *testing.T) {
	t.Parallel()
	burst := []struct {
		after                   time.Duration
		replicas                int
		applied, recommendation int
	}{
		{0, 1, 1000, 1000}, {time.Minute, 6, 3000, 3000}, {10 * time.Minute, 1, 3000, 1000}, {time.Hour - time.Minute, 1, 3000, 1000},
		{time.Minute, 1, 1000, 1000}, {time.Minute, 1, 1000, 1000}, {time.Minute, 4, 2000, 2000}, {time.Minute, 1, 2000, 1000},
	}
	for _, apply := range []bool{false, true} {
		s := newShop(t, false)
		k := s.keeper()
		for i, step := range burst {
			s.now = s.now.Add(step.after)
			if i%3 == 2 {
				k = s.keeper() // another process knows what is remembered
			}
			want := step.recommendation
			if apply {
				want = step.applied
			}
			out := s.settle(k, s.follow(apply, step.replicas))[0]
			if out.Decision.RUPerSecond != want {
				t.Errorf("apply %t, step %d: %d RU/s, want %d: %s", apply, i, out.Decision.RUPerSecond, want, out.Decision.Why())
			}
			turn, wants := s.begin(t.Context(), k, []following{s.follow(apply, step.replicas)})
			shown := turn.Follow("p0", wants["p0"], nil)
			if again := shown[0]; again.Decision.RUPerSecond != want {
				t.Errorf("apply %t, step %d: %d RU/s at a second look, want %d", apply, i, again.Decision.RUPerSecond, want)
			}
		}
	}
}

func TestARecommendationBeginsAnewWhereSomebodyProvisioned(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	k := s.keeper()
	s.settle(k, s.follow(false, 6))
	s.provision(5000)
	s.now = s.now.Add(10 * time.Minute)
	if out := s.settle(k, s.follow(false, 6)); out[0].Decision.RUPerSecond != 5000 || out[0].Provisioned != 5000 {
		t.Errorf("got %+v", out[0])
	}
}

// TestWhatIsFoundInAContainerIsReadBeforeTheFirstDecision looks at two, of which one cannot be read.
func TestWhatIsFoundInAContainerIsReadBeforeTheFirstDecision(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	k, good, missing := s.keeper(), s.follow(true, 6), s.follow(true, 6)
	missing.Container.Container.ID = "nothing"
	turn, wants := s.begin(t.Context(), k, []following{good, missing})
	out := turn.Follow("p0", wants["p0"], nil)
	if out[0].Decision.RUPerSecond != 3000 || out[0].Provisioned != 1000 {
		t.Errorf("got %+v", out[0])
	}
	if out[1].Decision != nil || out[1].Error == "" {
		t.Errorf("of what is not there: %+v", out[1])
	}
	s.want("a look changes nothing", 1000)
	s.now = s.now.Add(time.Minute)
	s.settle(k, good)
	s.want("what was looked at", 3000)
}

func TestAStateThatCannotBeLoadedShowsWhatWasShownBefore(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	k := s.keeper()
	k.Store = broken{s.store}
	turn, wants := s.begin(t.Context(), k, []following{s.follow(true, 6)})
	last := []state.Container{{Database: "shop", Container: "orders", Provisioned: 700}}
	if out := turn.Follow("p0", wants["p0"], last); len(out) != 1 || out[0].Provisioned != 700 {
		t.Errorf("got %+v", out)
	}
	turn.Settle(t.Context(), wants)
	s.want("nothing is changed", 1000)
	if !strings.Contains(s.log.String(), "throughput cannot be settled") {
		t.Errorf("said %q", s.log.String())
	}
}

// broken is a store that cannot be read.
type broken struct{ state.Store }

func (broken) Documents(context.Context, string) ([]state.Document, error) {
	return nil, errors.New("the table cannot be reached")
}

// hanging is a client that never answers about one container.
type hanging struct {
	throughput.Client
	container string
}

func (h hanging) ReadThroughput(ctx context.Context, c cosmos.Container) (cosmos.Throughput, error) {
	if c.ID == h.container {
		<-ctx.Done()
		return cosmos.Throughput{}, ctx.Err()
	}
	return h.Client.ReadThroughput(ctx, c)
}

func TestAContainerThatHangsKeepsNoOtherFromItsThroughput(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	silent, good := s.follow(true, 6), s.follow(true, 6)
	silent.Container.Container.ID = "silent"
	silent.Client, good.Client = hanging{s.way, "silent"}, hanging{s.way, "silent"}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	k := s.keeper()
	if out := s.try(ctx, k, silent, good); !strings.Contains(out[0].Error, context.DeadlineExceeded.Error()) || out[1].Error != "" {
		t.Errorf("the silent one: %+v", out[0])
	}
	s.want("the other one", 3000)
}
