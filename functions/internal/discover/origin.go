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
	switch {
	case o.container != cosmos.Container{}:
		return o.container.String()
	case len(o.readings) == 1:
		return o.readings[0].Database + "/" + o.readings[0].Container
	default:
		return strings.TrimPrefix(o.Prefix, o.head()+"_")
	}
}

// maxReadings is the greatest number of readings that the account is asked about. Names with more
// underscores are left to the user.
const maxReadings = 16

// origin finds the origin of a processor's leases.
func (s survey) origin(ctx context.Context, f changefeed.FoundProcessor, usage *cosmos.Usage) origin {
	o := origin{FoundProcessor: f, readings: changefeed.ReadNames(f.Prefix, s.connection.Host)}
	if r, ok := changefeed.ReadRIDs(f.Prefix); ok {
		o.readings, o.byRID = []changefeed.PrefixReading{r}, true
	}
	if len(o.readings) > maxReadings {
		return o
	}
	var confirmed []changefeed.PrefixReading
	for _, r := range o.readings {
		c, err := s.ask(ctx, r, o.byRID, usage)
		switch {
		case err == nil:
			confirmed, o.container = append(confirmed, r), c
		case !errors.Is(err, cosmos.ErrMissing):
			o.err = fmt.Errorf("the monitored container could not be looked up: %w", err)
			return o
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

// ask asks the account for the container of a reading. The error of one that it does not have is
// cosmos.ErrMissing.
func (s survey) ask(ctx context.Context, r changefeed.PrefixReading, byRID bool, usage *cosmos.Usage) (c cosmos.Container, err error) {
	var spent cosmos.Usage
	if byRID {
		c, spent, err = s.account.NamesOf(ctx, r.Database, r.Container)
	} else {
		c = cosmos.Container{Database: r.Database, ID: r.Container}
		_, spent, err = s.account.Describe(ctx, c)
	}
	usage.Add(spent)
	return c, err
}
