package throughput_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/state"
)

// TestARecommendationIsWhatApplyWouldHaveMadeOfIt goes through a burst twice, in two processes each.
func TestARecommendationIsWhatApplyWouldHaveMadeOfIt(t *testing.T) {
	t.Parallel()
	burst := []struct {
		after    time.Duration
		replicas int
		want     int
	}{
		{0, 1, 1000}, {time.Minute, 6, 3000}, {10 * time.Minute, 1, 3000}, {time.Hour - time.Minute, 1, 3000},
		{time.Minute, 1, 1000}, {time.Minute, 1, 1000}, {time.Minute, 4, 2000}, {time.Minute, 1, 2000},
	}
	for _, apply := range []bool{false, true} {
		s := newShop(t, false)
		k := s.keeper()
		var last *state.ContainerThroughput
		for i, step := range burst {
			s.now = s.now.Add(step.after)
			if i%3 == 2 {
				k = s.keeper() // another process knows what stood in the State
			}
			c := s.follow(apply, step.replicas)
			c.Last = last
			out := s.settle(k, c)[0]
			if out.Decision.RUPerSecond != step.want {
				t.Errorf("apply %t, step %d: %d RU/s, want %d: %s", apply, i, out.Decision.RUPerSecond, step.want, out.Decision.Why())
			}
			if again := k.Preview(s.now, c); again.Decision.RUPerSecond != step.want {
				t.Errorf("apply %t, step %d: %d RU/s at a second look, want %d", apply, i, again.Decision.RUPerSecond, step.want)
			}
			last = &state.ContainerThroughput{Apply: apply, Provisioned: out.Provisioned, Decision: out.Decision, Memory: out.Memory}
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

// TestWhatIsFoundInAContainerIsLookedAtBeforeTheFirstTurn looks at two, of which one cannot be read.
func TestWhatIsFoundInAContainerIsLookedAtBeforeTheFirstTurn(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	k, good, missing := s.keeper(), s.follow(true, 6), s.follow(true, 6)
	missing.Container.ID = "nothing"
	if out := k.Preview(s.now, good); out.Decision != nil || out.Err != nil || out.Provisioned != 0 {
		t.Errorf("before anything was read: %+v", out)
	}
	// One after the other: what both need is paid for by whoever asks first.
	testworld.Must(t, k.Look(t.Context(), s.now, []throughput.Container{good}))
	testworld.Must(t, k.Look(t.Context(), s.now, []throughput.Container{missing}))
	if out := k.Preview(s.now, good); out.Decision.RUPerSecond != 3000 || out.Provisioned != 1000 || out.Applied {
		t.Errorf("got %+v", out)
	}
	if out := k.Preview(s.now, missing); out.Decision != nil || out.Err == nil {
		t.Errorf("of what is not there: %+v", out)
	}
	s.want("a look changes nothing", 1000)
	if spent := k.Spent(good); spent.Requests != 4 || spent.Charge == 0 {
		t.Errorf("it cost %+v, want the account, the RID, the query and the offer", spent)
	}
	if spent := k.Spent(good); spent.Requests != 0 {
		t.Errorf("told twice: %+v", spent)
	}
	before := s.server.Requests().Requests[cosmosfake.ListOffers]
	s.settle(k, good)
	if spent := k.Spent(good); spent.Requests != 2 || s.server.Requests().Requests[cosmosfake.ListOffers] != before {
		t.Errorf("a change cost %+v, want a read and a replace", spent)
	}
	s.want("what was looked at", 3000)
}

// hanging is a way that never answers about one container.
type hanging struct {
	throughput.Way
	container string
}

func (h hanging) ReadThroughput(ctx context.Context, c cosmos.Container) (cosmos.Throughput, error) {
	if c.ID == h.container {
		<-ctx.Done()
		return cosmos.Throughput{}, ctx.Err()
	}
	return h.Way.ReadThroughput(ctx, c)
}

func TestAContainerThatHangsKeepsNoOtherFromItsThroughput(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	silent, good := s.follow(true, 6), s.follow(true, 6)
	silent.Container.ID = "silent"
	silent.Way, good.Way = hanging{s.way, "silent"}, hanging{s.way, "silent"}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	k := s.keeper()
	outcomes, err := k.Settle(ctx, s.now, []throughput.Container{silent, good})
	testworld.Must(t, errors.Join(err, outcomes[1].Err))
	if !errors.Is(outcomes[0].Err, context.DeadlineExceeded) {
		t.Errorf("the silent one: %+v", outcomes[0])
	}
	s.want("the other one", 3000)
}
