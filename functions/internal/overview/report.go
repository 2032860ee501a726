package overview

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
)

// recordsAtOnce is how many records are read at once.
const recordsAtOnce = 32

// Members are the processors that have one of some names, or are in a group that has; without names
// they are all. The error of another name wraps report.ErrUnknownName.
func (o *Overview) Members(names []string) (members []Subject, err error) {
	if len(names) == 0 {
		return o.Processors, nil
	}
	for _, name := range names {
		if !o.Knows(name) {
			return nil, o.Unknown(name)
		}
	}
	for _, p := range o.Processors {
		if slices.Contains(names, p.Name) || p.Group != "" && slices.Contains(names, p.Group) {
			members = append(members, p)
		}
	}
	return members, nil
}

// Report is what processors ran since a time. It reads some of them at once, so that their hours are not in
// memory together. What cannot be read of one is its error, and keeps nothing of the others. progress is told
// how many processors were read.
func (o *Overview) Report(ctx context.Context, processors []Subject, since time.Time, progress func(done int)) (shadow.Report, error) {
	since, until := since.UTC().Truncate(time.Hour), o.Now().UTC()
	c := shadow.NewCollector(since, until)
	var hours [recordsAtOnce][]state.Summary
	var errs [recordsAtOnce]error
	for first := 0; first < len(processors) && ctx.Err() == nil; first += recordsAtOnce {
		progress(first)
		some := processors[first:min(first+recordsAtOnce, len(processors))]
		var loads sync.WaitGroup
		for i, p := range some {
			loads.Go(func() {
				s, _, err := o.Stored(ctx, p.Name)
				if hours[i], errs[i] = o.Store.Summaries(ctx, p.Name, since, until); s.Hour != nil {
					hours[i] = append(hours[i], *s.Hour)
				}
				errs[i] = errors.Join(errs[i], err)
			})
		}
		loads.Wait()
		for i, p := range some {
			if errs[i] != nil {
				o.Log.Error("the record cannot be read", "processor", p.Name, "error", errs[i].Error())
			}
			c.Add(p.Name, p.Group, hours[i], errs[i])
		}
	}
	return c.Report(), ctx.Err()
}
