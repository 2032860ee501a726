package sizing

import "time"

const (
	effective    = 0.1              // share of what further replicas should have added that has to have come
	takeInterval = 13 * time.Second // in which a further replica takes one lease (docs/tune.md, What the model believes)
	settling     = 3 * time.Minute  // from the decision until the leases are there and the rate of a minute shows them
	trialHold    = 15 * time.Minute // for which a scale-out that was not effective is not repeated
)

// Trial is a scale-out that has to show whether it helps: a limit that all replicas share, such as
// a database, makes more of them useless.
type Trial struct {
	At    time.Time `json:"at,omitzero"`    // when it was decided; zero = there is none
	From  int       `json:"from,omitempty"` // replicas before
	To    int       `json:"to,omitempty"`   // replicas asked for
	Rate  float64   `json:"rate,omitempty"` // what all owners did before, in LSNs per second
	Until time.Time `json:"until,omitzero"` // until when it is not repeated; zero = it was not found wanting
}

func (t Trial) holds(now time.Time) bool { return now.Before(t.Until) }

// try judges the last scale-out, or begins to watch this one. It returns the replicas to ask for.
func (in Input) try(m *Memory, d demand, a *Answer) (Trial, int) {
	t, asked := m.Trial, min(a.Replicas, in.MaxReplicas)
	switch {
	case t.holds(in.Now):
	case !t.Until.IsZero(), !t.At.IsZero() && d.backlog == 0:
		t = Trial{} // the hold is over, or the scale-out was enough
	case t.At.IsZero():
		if asked > in.Replicas && in.Replicas > 0 && in.Owners >= in.Replicas && d.backlog > 0 && m.Done > 0 {
			t = Trial{At: in.Now, From: in.Replicas, To: asked, Rate: m.Done}
		}
	case asked > t.To:
		t.At, t.To = in.Now, asked
	case in.Owners >= t.To && in.Now.Sub(t.At) >= settling+takeInterval*time.Duration((d.count+t.To-1)/t.To):
		if due := t.Rate * float64(t.To-t.From) / float64(t.From); m.Done-t.Rate >= effective*due {
			t = Trial{}
			break
		}
		t.Until = in.Now.Add(trialHold)
	}
	if !t.holds(in.Now) || a.Replicas <= t.From {
		return t, a.Replicas
	}
	asked, a.Replicas = a.Replicas, t.From
	a.because("notEffective", "%d replicas did no more than %d (%.3g/s): %d are not asked for before %s; look at what the handler waits for",
		t.To, t.From, t.Rate, asked, t.Until.UTC().Format("15:04"))
	return t, a.Replicas
}
