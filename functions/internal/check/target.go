package check

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/actions"
)

// targets looks at what is scaled: the target of each processor without a group, and of each group. It says whether
// something other than feedscale acts on it. There is no line if a kind acts on nothing that the target names.
func (c *checker) targets() (all []*section) {
	for _, of := range c.subjects() {
		for _, kind := range c.kinds {
			if kind.Rivals == nil || of.member {
				continue
			}
			s := &section{processors: of.processors}
			s.try("scale target", func(ctx context.Context) finding {
				seen, err := kind.Rivals(ctx, of.target)
				switch s.target = seen.Target; {
				case s.target == "":
					return finding{}
				case err != nil:
					return notTried("%v", err)
				}
				return judge(seen, func(t actions.Trigger) bool { return asksFeedscale(t, of.name, of.signalQueue) })
			})
			all = append(all, s)
		}
	}
	return all
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

// takeAsTrigger is the other way to fix it, as a comment after the command.
const takeAsTrigger = "   # or take feedscale as the trigger of a ScaledObject (https://github.com/feedscale/feedscale/blob/main/docs/keda-external-scaler.md)"

// asksFeedscale reports whether a trigger is one of those of docs/act.md. One of the external scaler is told by
// the name of the subject. Its address is that of any Service in front of feedscale.
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
