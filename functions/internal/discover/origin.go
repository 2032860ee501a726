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

// origin is where the leases of a processor come from: what their prefix says,
// as far as the account confirms it.
type origin struct {
	changefeed.FoundProcessor
	readings  []changefeed.PrefixReading // what the prefix can say, one at best
	byRID     bool                       // the reading has RIDs, not names
	container cosmos.Container           // the monitored container; zero where the account has none, or several, that it can be
	err       error                      // why that could not be asked
}

// head is the processor name and the host; "" where it cannot be told.
func (o origin) head() string {
	if len(o.readings) == 0 {
		return ""
	}
	for _, r := range o.readings[1:] {
		if r.Head != o.readings[0].Head {
			return ""
		}
	}
	return o.readings[0].Head
}

// monitored names the monitored container as well as it can be: by its names,
// or else as the ids have it.
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

// maxReadings is how many readings of a prefix the account is asked about.
// Names with so many underscores are left to the user.
const maxReadings = 16

// question is what the account is asked: for the container that has these RIDs,
// or whether there is one of these names.
type question struct {
	database, container string
	byRID               bool
}

type answer struct {
	container cosmos.Container // zero where there is none
	err       error
}

// origins finds where the leases of each processor come from. What several have
// in common is asked once.
func (s survey) origins(ctx context.Context, found []changefeed.FoundProcessor, usage *cosmos.Usage) []origin {
	origins := make([]origin, len(found))
	answers := make(map[question]*answer)
	for i, f := range found {
		origins[i] = s.read(f)
		for _, q := range origins[i].questions() {
			answers[q] = &answer{}
		}
	}
	s.ask(ctx, answers, usage)
	for i := range origins {
		origins[i].confirm(answers)
	}
	return origins
}

func (s survey) read(f changefeed.FoundProcessor) origin {
	if r, ok := changefeed.ReadRIDs(f.Prefix); ok {
		return origin{FoundProcessor: f, readings: []changefeed.PrefixReading{r}, byRID: true}
	}
	return origin{FoundProcessor: f, readings: changefeed.ReadNames(f.Prefix, s.connection.Host)}
}

func (o origin) questions() []question {
	if len(o.readings) > maxReadings {
		return nil
	}
	questions := make([]question, len(o.readings))
	for i, r := range o.readings {
		questions[i] = question{r.Database, r.Container, o.byRID}
	}
	return questions
}

// ask answers all questions. The account itself bounds how many requests are
// under way.
func (s survey) ask(ctx context.Context, answers map[question]*answer, usage *cosmos.Usage) {
	var (
		mu sync.Mutex // guards usage
		wg sync.WaitGroup
	)
	for q, a := range answers {
		wg.Go(func() {
			var spent cosmos.Usage
			a.container, spent, a.err = s.find(ctx, q)
			mu.Lock()
			usage.Add(spent)
			mu.Unlock()
		})
	}
	wg.Wait()
}

func (s survey) find(ctx context.Context, q question) (cosmos.Container, cosmos.Usage, error) {
	if q.byRID {
		c, usage, err := s.account.NamesOf(ctx, q.database, q.container)
		if errors.Is(err, cosmos.ErrNoContainer) {
			err = nil
		}
		return c, usage, err
	}
	c := cosmos.Container{Database: q.database, ID: q.container}
	has, usage, err := s.account.Has(ctx, c)
	if !has {
		c = cosmos.Container{}
	}
	return c, usage, err
}

// confirm keeps, of several readings, those whose container exists.
func (o *origin) confirm(answers map[question]*answer) {
	var confirmed []changefeed.PrefixReading
	for i, q := range o.questions() {
		switch a := answers[q]; {
		case a.err != nil:
			o.err = fmt.Errorf("the monitored container could not be looked up: %w", a.err)
			return
		case a.container != cosmos.Container{}:
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
