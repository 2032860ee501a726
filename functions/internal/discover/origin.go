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
	err       error
}

// origins finds the origin of each processor's leases. Equal questions are asked once.
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

// ask answers all questions. The account bounds its concurrent requests.
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
		if errors.Is(err, cosmos.ErrMissing) {
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

// confirm keeps the readings whose container exists.
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
