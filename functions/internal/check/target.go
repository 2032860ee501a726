package check

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/actions"
)

// checkTargets looks at what is scaled: the target of each processor without a group, and of each
// group.
func (c *checker) checkTargets(ctx context.Context) []func() []Line {
	var tasks []func() []Line
	add := func(target map[string]string, signalQueue string, processors ...string) {
		for _, kind := range c.kinds {
			if kind.Rivals != nil {
				tasks = append(tasks, func() []Line { return checkTarget(ctx, kind, target, signalQueue, processors) })
			}
		}
	}
	members := make(map[string][]string)
	for _, p := range c.config.Processors {
		if p.Group == "" {
			add(p.Target, p.SignalQueue, p.Name)
		} else {
			members[p.Group] = append(members[p.Group], p.Name)
		}
	}
	for _, g := range c.config.Groups {
		add(g.Target, g.SignalQueue, members[g.Name]...)
	}
	return tasks
}

// checkTarget says whether something other than feedscale acts on a target. There is no line where
// the kind acts on nothing that the target names.
func checkTarget(ctx context.Context, kind actions.Kind, target map[string]string, signalQueue string, processors []string) []Line {
	var seen actions.Seen
	s := section{processors: processors}
	s.try(ctx, "scale target", func(ctx context.Context) finding {
		var err error
		if seen, err = kind.Rivals(ctx, target); err != nil {
			return notTried("%v", err)
		}
		return judge(seen, func(t actions.Trigger) bool { return asksFeedscale(t, signalQueue) })
	})
	if seen.Target == "" {
		return nil
	}
	for i := range s.lines {
		s.lines[i].Target = seen.Target
	}
	return s.lines
}

// judge says what follows from the rivals of a target. One that asks feedscale is how feedscale acts.
func judge(seen actions.Seen, asksFeedscale func(actions.Trigger) bool) finding {
	var fighting, fixes, harmless []string
	for _, r := range seen.Rivals {
		switch {
		case slices.ContainsFunc(r.Triggers, asksFeedscale) && r.Paused:
			harmless = append(harmless, r.Name+" asks feedscale, and is paused")
		case slices.ContainsFunc(r.Triggers, asksFeedscale):
			harmless = append(harmless, r.Name+" asks feedscale")
		case r.Paused:
			harmless = append(harmless, r.Name+" is paused; it acts on it again once it is resumed")
		default:
			fighting, fixes = append(fighting, r.Name), append(fixes, r.Remove)
		}
	}
	switch {
	case len(fighting) == 1:
		return bad(fixes[0]+takeAsTrigger, "%s acts on it, too: it and feedscale would undo each other's changes for ever", fighting[0])
	case len(fighting) > 1:
		return bad(strings.Join(fixes, " && ")+takeAsTrigger, "%s act on it, too: they and feedscale would undo each other's changes for ever", strings.Join(fighting, " and "))
	case len(harmless) > 0:
		return good("%s", strings.Join(harmless, "; "))
	}
	return good("nothing else acts on it in %s", seen.Where)
}

// takeAsTrigger is the other way to mend it, as a comment after the command.
const takeAsTrigger = "   # or take feedscale as the trigger of a ScaledObject (docs/act.md, KEDA's metrics-api)"

// asksFeedscale reports whether a trigger is one of those of docs/act.md.
func asksFeedscale(t actions.Trigger, signalQueue string) bool {
	switch t.Type {
	case "azure-servicebus":
		return signalQueue != "" && strings.EqualFold(t.Metadata["queueName"], signalQueue)
	case "metrics-api":
		u, err := url.Parse(t.Metadata["url"])
		return err == nil && strings.Contains(u.Path, "/api/processors/")
	case "external", "external-push":
		return strings.Contains(t.Metadata["scalerAddress"], "feedscale") // the name of its Service
	}
	return false
}
