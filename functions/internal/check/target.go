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
func (c *checker) checkTargets(ctx context.Context) (tasks []func() []Line) {
	for _, of := range c.subjects() {
		for _, kind := range c.kinds {
			if kind.Rivals != nil && !of.member {
				tasks = append(tasks, func() []Line { return checkTarget(ctx, kind, of) })
			}
		}
	}
	return tasks
}

// checkTarget says whether something other than feedscale acts on the target of a subject. There is no line
// if the kind acts on nothing that the target names.
func checkTarget(ctx context.Context, kind actions.Kind, of subject) []Line {
	var seen actions.Survey
	s := section{processors: of.processors}
	s.try(ctx, "scale target", func(ctx context.Context) finding {
		var err error
		if seen, err = kind.Rivals(ctx, of.target); err != nil {
			return notTried("%v", err)
		}
		return judge(seen, func(t actions.Trigger) bool { return asksFeedscale(t, of.name, of.signalQueue) })
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
func judge(seen actions.Survey, asksFeedscale func(actions.Trigger) bool) finding {
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
	case len(fighting) > 0:
		return bad(strings.Join(fixes, " && ")+takeAsTrigger, "%s and feedscale would undo each other's changes for ever: each acts on it", strings.Join(fighting, ", "))
	case len(harmless) > 0:
		return good("%s", strings.Join(harmless, "; "))
	}
	return good("nothing else acts on it in %s", seen.Where)
}

// takeAsTrigger is the other way to mend it, as a comment after the command.
const takeAsTrigger = "   # or take feedscale as the trigger of a ScaledObject (https://github.com/feedscale/feedscale/blob/main/docs/keda-external-scaler.md)"

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
