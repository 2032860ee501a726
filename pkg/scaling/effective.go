package scaling

import (
	"fmt"
	"slices"
	"time"
)

// The rules by which a scale-out counts as not effective.
const (
	effectiveGain = 0.1              // share of what further replicas should have added that has to have come
	drainedMean   = time.Minute      // over which it is measured what all owners do together
	firstHold     = 15 * time.Minute // for which a scale-out that was not effective is not repeated; then twice as long each time
	longestHold   = 4 * time.Hour
	liftedGain    = 0.2 // share by which the owners have to do more than when that was found, for it to count no more
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
	behind := slices.ContainsFunc(s.flows, func(f Flow) bool { return f.Behind })
	reach := asked // as many as there can be
	if most := s.Policy.MaxReplicas; most != nil {
		reach = min(asked, *most)
	}
	switch {
	case !t.Until.IsZero() && s.Now.Before(t.Until) && drained <= (1+liftedGain)*t.Got:
		return min(asked, max(t.From, 1))
	case !t.Until.IsZero():
		*t = Trial{Hold: t.Hold} // what limited them may have gone
	case t.At.IsZero():
	case !behind:
		*t = Trial{} // it was enough, or the need has passed
	case reach > t.To:
		t.To, t.At = reach, s.Now
	case live >= t.To && s.spread(t.To) && s.Now.Sub(t.At) >= effectTime+takeInterval*time.Duration((len(s.flows)+t.To-1)/t.To)+2*drainedMean:
		due := t.Drain * float64(t.To-t.From) / float64(t.From)
		if drained-t.Drain >= effectiveGain*due {
			*t = Trial{}
			break
		}
		t.Hold = min(longestHold, max(firstHold, 2*t.Hold))
		t.Until, t.Got = s.Now.Add(t.Hold), drained
		return min(asked, t.From)
	}
	if current := s.currentReplicas(); t.At.IsZero() && behind && live > 0 && live >= current && reach > live && drained > 0 {
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
