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

// answer is what the account says of a container.
type answer struct {
	container cosmos.Container // zero if there is none
	err       error
}

// origin finds the origin of a processor's leases. known are earlier answers, by RIDs or names: many processors
// share a container.
func (s survey) origin(ctx context.Context, f changefeed.FoundProcessor, known map[cosmos.Container]answer, usage *cosmos.Usage) origin {
	o := origin{FoundProcessor: f, readings: changefeed.ReadNames(f.Prefix, s.connection.Host)}
	if r, ok := changefeed.ReadRIDs(f.Prefix); ok {
		o.readings, o.byRID = []changefeed.PrefixReading{r}, true
	}
	if len(o.readings) > maxReadings {
		return o
	}
	var confirmed []changefeed.PrefixReading
	for _, r := range o.readings {
		c := cosmos.Container{Database: r.Database, ID: r.Container}
		a, asked := known[c]
		if !asked {
			a = s.ask(ctx, c, o.byRID, usage)
			known[c] = a
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

// ask asks the account for the container with two RIDs, or whether one with two names exists.
func (s survey) ask(ctx context.Context, c cosmos.Container, byRID bool, usage *cosmos.Usage) answer {
	var spent cosmos.Usage
	var err error
	if byRID {
		c, spent, err = s.account.NamesOf(ctx, c.Database, c.ID)
	} else {
		_, spent, err = s.account.Describe(ctx, c)
	}
	usage.Add(spent)
	if errors.Is(err, cosmos.ErrMissing) {
		return answer{}
	}
	return answer{c, err}
}
