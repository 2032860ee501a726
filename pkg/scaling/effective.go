package scaling

import (
	"fmt"
	"time"
)

// The rules by which a scale-out counts as not effective.
const (
	effectiveGain = 0.1              // share of what further replicas should have added that has to have come
	drainedMean   = time.Minute      // over which it is measured what all owners do together
	firstHold     = 15 * time.Minute // for which a scale-out that was not effective is not repeated; then twice as long each time
	longestHold   = 4 * time.Hour
	liftedGain    = 0.2              // share by which the owners have to do more than when that was found, for it to count no more
	usualEffect   = 45 * time.Second // from a decision until its replicas work, where that was never seen
	longestEffect = 2 * time.Minute  // the most that it is taken for
	longestStart  = 10 * time.Minute // after which nobody waits for the replicas of a decision
)

// Trial is a scale-out of step 3 that has to show whether it helps. Rates are in LSNs per second.
type Trial struct {
	At    time.Time     `json:"at,omitzero"`    // when it was decided; zero where there is none
	From  int           `json:"from,omitempty"` // owners before
	To    int           `json:"to,omitempty"`   // replicas asked for
	Drain float64       `json:"drain,omitempty"`
	Until time.Time     `json:"until,omitzero"` // until when it is not repeated; zero where it was not found wanting
	Got   float64       `json:"got,omitempty"`  // what all owners then did
	Hold  time.Duration `json:"hold,omitempty"` // the last time
}

func (t Trial) reason(asked int) string {
	return fmt.Sprintf("%d more replicas than %d did %.3g changes per second, where it had been %.3g: not effective, so %d are not asked for before %s; look at what the handler waits for",
		t.To-t.From, t.From, t.Got, t.Drain, asked, t.Until.UTC().Format("15:04"))
}

// effective returns how many of the replicas that step 3 asks for a scale-out that did not help before
// leaves, and judges the last one. It is judged once its owners are there and hold the leases that they
// are to have: start-up, and 13 s for each lease (docs/tune.md, What the model believes).
func (s *steps) effective(asked int) int {
	t, drained, live := &s.next.Rates.Trial, s.next.Rates.Drained, s.liveOwners()
	behind := 0
	for _, f := range s.flows {
		if f.Behind {
			behind++
		}
	}
	full := 2*behind > len(s.flows) // else what the owners do together is what arrives, and not what they can do
	reach := asked                  // as many as there can be
	if most := s.Policy.MaxReplicas; most != nil {
		reach = min(asked, *most)
	}
	switch {
	case !t.Until.IsZero() && s.Now.Before(t.Until) && drained <= (1+liftedGain)*t.Got:
		return min(asked, max(t.From, 1))
	case !t.Until.IsZero():
		*t = Trial{Hold: t.Hold} // what limited them may have gone
	case t.At.IsZero():
	case behind == 0:
		*t = Trial{} // it was enough, or the need has passed
	case reach > t.To:
		t.To, t.At = reach, s.Now
	case full && live >= t.To && s.spread(t.To) && s.Now.Sub(t.At) >= s.effectTime()+takeInterval*time.Duration((len(s.flows)+t.To-1)/t.To)+2*drainedMean:
		due := t.Drain * float64(t.To-t.From) / float64(t.From)
		if drained-t.Drain >= effectiveGain*due {
			*t = Trial{}
			break
		}
		t.Hold = min(longestHold, max(firstHold, 2*t.Hold))
		t.Until, t.Got = s.Now.Add(t.Hold), drained
		return min(asked, t.From)
	}
	if current := s.currentReplicas(); t.At.IsZero() && full && live > 0 && live >= current && reach > live && drained > 0 {
		*t = Trial{At: s.Now, From: live, To: reach, Drain: drained, Hold: t.Hold}
	}
	return asked
}

// spread reports whether the leases are spread over so many owners about evenly.
func (s *steps) spread(owners int) bool {
	held := make(map[string]int)
	for i := range s.Lag.Partitions {
		if p := &s.Lag.Partitions[i]; s.live(p) {
			held[p.Owner]++
		}
	}
	most := (len(s.flows) + owners - 1) / owners
	for _, n := range held {
		if n > most+1 {
			return false
		}
	}
	return true
}

// StartUp is how long it takes from a decision for more replicas until as many own leases.
type StartUp struct {
	At      time.Time `json:"at,omitzero"`       // of a decision whose replicas are not there yet; zero where there is none
	To      int       `json:"to,omitempty"`      // replicas that it asked for
	Seconds float64   `json:"seconds,omitempty"` // what it took, the last ones the most; 0 where none was seen to come
}

// starts notes a decision for more replicas than there are.
func (s *steps) starts(current int) {
	if u := &s.next.Rates.StartUp; u.At.IsZero() && s.replicas > current && s.replicas > s.liveOwners() {
		u.At, u.To = s.Now, s.replicas
	}
}

// started sees whether its replicas have come. It is given up where fewer are asked for meanwhile, and
// where they take too long: nobody may act on it.
func (s *steps) started() {
	u := &s.next.Rates.StartUp
	if u.At.IsZero() {
		return
	}
	took := s.Now.Sub(u.At)
	switch {
	case s.currentReplicas() < u.To || took > longestStart:
	case s.liveOwners() < u.To:
		return
	case u.Seconds == 0:
		u.Seconds = took.Seconds()
	default:
		u.Seconds += (took.Seconds() - u.Seconds) / 2
	}
	u.At, u.To = time.Time{}, 0
}

// effectTime is how long a decision is taken to need until its replicas work.
func (s *steps) effectTime() time.Duration {
	if u := s.next.Rates.StartUp.Seconds; u > 0 {
		return min(longestEffect, time.Duration(u*float64(time.Second)))
	}
	return usualEffect
}

// shortfall is how much more arrives per second than the replicas can do: at each owner with the leases
// that it has, or, while leases are on their way, with the leases spread evenly by count. What one owner
// cannot do of a partition is left out, since replicas do not help it.
func (s *steps) shortfall(arrival func(partition int) float64, most float64) (short float64) {
	drain, current := s.next.DrainPerReplica*(1+s.doubt()), max(1, s.currentReplicas())
	owners, all, owned := make(map[string]float64), 0.0, true
	for i := range s.Lag.Partitions {
		if p, gets := &s.Lag.Partitions[i], arrival(i); gets < most && !s.excluded(p) {
			all += gets
			owned = owned && s.live(p)
			owners[p.Owner] += gets
		}
	}
	if owned && len(owners) == current && s.spread(current) {
		for i := range s.Lag.Partitions { // in this order, so that the sum is always the same
			owner := s.Lag.Partitions[i].Owner
			short += max(0, owners[owner]-drain)
			delete(owners, owner)
		}
		return short
	}
	partitions := len(s.Lag.Partitions)
	fewer, more := partitions/current, partitions%current // leases of an owner, and how many owners have one more
	over := func(leases int) float64 { return max(0, float64(leases)*all/float64(partitions)-drain) }
	return float64(more)*over(fewer+1) + float64(current-more)*over(fewer)
}
