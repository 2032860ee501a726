package discover

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	err       error
}

// origin finds the origin of a processor's leases. known are earlier answers: many processors share a container.
func (s survey) origin(ctx context.Context, f changefeed.FoundProcessor, known map[question]answer, usage *cosmos.Usage) origin {
	o := origin{FoundProcessor: f, readings: changefeed.ReadNames(f.Prefix, s.connection.Host)}
	if r, ok := changefeed.ReadRIDs(f.Prefix); ok {
		o.readings, o.byRID = []changefeed.PrefixReading{r}, true
	}
	if len(o.readings) > maxReadings {
		return o
	}
	var confirmed []changefeed.PrefixReading
	for _, r := range o.readings {
		q := question{r.Database, r.Container, o.byRID}
		a, asked := known[q]
		if !asked {
			a = s.ask(ctx, q, usage)
			known[q] = a
		}
		if a.err != nil {
			o.err = fmt.Errorf("the monitored container could not be looked up: %w", a.err)
			return o
		}
		if a.container != (cosmos.Container{}) {
			confirmed, o.container = append(confirmed, r), a.container
		}
	}
	if len(confirmed) > 0 {
		o.readings = confirmed
	}
	if len(confirmed) > 1 {
		o.container = cosmos.Container{}
	}
	return o
}

func (s survey) ask(ctx context.Context, q question, usage *cosmos.Usage) answer {
	c, spent, err := cosmos.Container{Database: q.database, ID: q.container}, cosmos.Usage{}, error(nil)
	if q.byRID {
		c, spent, err = s.account.NamesOf(ctx, q.database, q.container)
	} else {
		_, spent, err = s.account.Describe(ctx, c)
	}
	usage.Add(spent)
	if errors.Is(err, cosmos.ErrMissing) {
		return answer{}
	}
	return answer{c, err}
}
