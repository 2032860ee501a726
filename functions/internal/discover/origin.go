package discover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// origin is the monitored container of some leases: what their prefix says, and the account
// confirms.
type origin struct {
	changefeed.FoundProcessor
	readings  []changefeed.PrefixReading // possible meanings of the prefix, one at best
	byRID     bool                       // a reading has RIDs, not names
	container cosmos.Container           // zero if the account has none of the readings, or several
	err       error                      // the account could not be asked
}

// head is the processor name and the host; "" if the readings differ.
func (o origin) head() string {
	head := ""
	for i, r := range o.readings {
		if i > 0 && r.Head != head {
			return ""
		}
		head = r.Head
	}
	return head
}

// monitored is the monitored container by its names, or else as the ids have it.
func (o origin) monitored() string {
	switch head := o.head(); {
	case o.container != cosmos.Container{}:
		return o.container.String()
	case len(o.readings) == 1:
		return o.readings[0].Database + "/" + o.readings[0].Container
	case head != "":
		return strings.TrimPrefix(o.Prefix, head+"_")
	default:
		return o.Prefix
	}
}

// maxReadings is the greatest number of readings that the account is asked about. Names with more
// underscores are left to the user.
const maxReadings = 16

// question asks the account for the container with these RIDs, or whether one with these names
// exists.
type question struct {
	database, container string
	byRID               bool
}

type answer struct {
	container cosmos.Container // zero if there is none
	usage     cosmos.Usage
	err       error
}

// origins finds the origin of each processor's leases. Equal questions are asked once, all of them
// together: the account bounds its concurrent requests.
func (s survey) origins(ctx context.Context, found []changefeed.FoundProcessor, usage *cosmos.Usage) []origin {
	origins := make([]origin, len(found))
	answers := make(map[question]*answer)
	for i, f := range found {
		if r, ok := changefeed.ReadRIDs(f.Prefix); ok {
			origins[i] = origin{FoundProcessor: f, readings: []changefeed.PrefixReading{r}, byRID: true}
		} else {
			origins[i] = origin{FoundProcessor: f, readings: changefeed.ReadNames(f.Prefix, s.connection.Host)}
		}
		for _, q := range origins[i].questions() {
			answers[q] = &answer{}
		}
	}
	var asking sync.WaitGroup
	for q, a := range answers {
		asking.Go(func() { *a = s.ask(ctx, q) })
	}
	asking.Wait()
	for _, a := range answers {
		usage.Add(a.usage)
	}
	for i := range origins {
		origins[i].confirm(answers)
	}
	return origins
}

func (o origin) questions() (questions []question) {
	if len(o.readings) <= maxReadings {
		for _, r := range o.readings {
			questions = append(questions, question{r.Database, r.Container, o.byRID})
		}
	}
	return questions
}

func (s survey) ask(ctx context.Context, q question) (a answer) {
	c := cosmos.Container{Database: q.database, ID: q.container}
	if q.byRID {
		c, a.usage, a.err = s.account.NamesOf(ctx, q.database, q.container)
	} else {
		_, a.usage, a.err = s.account.Describe(ctx, c)
	}
	switch {
	case errors.Is(a.err, cosmos.ErrMissing):
		a.err = nil
	case a.err == nil:
		a.container = c
	}
	return a
}

// confirm keeps the readings whose container exists.
func (o *origin) confirm(answers map[question]*answer) {
	var confirmed []changefeed.PrefixReading
	for i, q := range o.questions() {
		a := answers[q]
		if a.err != nil {
			o.err = fmt.Errorf("the monitored container could not be looked up: %w", a.err)
			return
		}
		if a.container != (cosmos.Container{}) {
			confirmed = append(confirmed, o.readings[i])
			o.container = a.container
		}
	}
	if len(confirmed) > 0 {
		o.readings = confirmed
	}
	if len(confirmed) > 1 {
		o.container = cosmos.Container{}
	}
}
