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
	add := func(subject string, target map[string]string, signalQueue string, processors ...string) {
		for _, kind := range c.kinds {
			if kind.Rivals != nil {
				tasks = append(tasks, func() []Line { return checkTarget(ctx, kind, subject, target, signalQueue, processors) })
			}
		}
	}
	members := make(map[string][]string)
	for _, p := range c.config.Processors {
		if p.Group == "" {
			add(p.Name, p.Target, p.SignalQueue, p.Name)
		} else {
			members[p.Group] = append(members[p.Group], p.Name)
		}
	}
	for _, g := range c.config.Groups {
		add(g.Name, g.Target, g.SignalQueue, members[g.Name]...)
	}
	return tasks
}

// checkTarget says whether something other than feedscale acts on the target of a subject, which is a
// processor or a group. There is no line where
// the kind acts on nothing that the target names.
func checkTarget(ctx context.Context, kind actions.Kind, subject string, target map[string]string, signalQueue string, processors []string) []Line {
	var seen actions.Seen
	s := section{processors: processors}
	s.try(ctx, "scale target", func(ctx context.Context) finding {
		var err error
		if seen, err = kind.Rivals(ctx, target); err != nil {
			return notTried("%v", err)
		}
		return judge(seen, func(t actions.Trigger) bool { return asksFeedscale(t, subject, signalQueue) })
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
		asks := slices.ContainsFunc(r.Triggers, asksFeedscale)
		switch {
		case asks && r.Paused:
			harmless = append(harmless, r.Name+" asks feedscale, and is paused")
		case asks:
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
const takeAsTrigger = "   # or take feedscale as the trigger of a ScaledObject (docs/act.md, KEDA, external-push)"

// asksFeedscale reports whether a trigger is one of those of docs/act.md. That of the external scaler
// is told by what feedscale reads of it, the name of the subject, and not by the address, which is that
// of whatever Service stands before feedscale.
func asksFeedscale(t actions.Trigger, subject, signalQueue string) bool {
	switch t.Type {
	case "azure-servicebus":
		return signalQueue != "" && strings.EqualFold(t.Metadata["queueName"], signalQueue)
	case "metrics-api":
		u, err := url.Parse(t.Metadata["url"])
		return err == nil && strings.HasSuffix(u.Path, "/api/processors/"+subject)
	case "external", "external-push":
		return t.Metadata["processor"] == subject
	}
	return false
}
