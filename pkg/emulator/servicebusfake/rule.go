package servicebusfake

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// defaultRule is the one of a subscription that was created without rules.
const defaultRule = "$Default"

// Rule selects messages for a subscription
// (https://learn.microsoft.com/azure/service-bus-messaging/topic-filters). It has no action;
// filters in SQL are not offered.
type Rule struct {
	Name   string
	Filter Filter

	created time.Time
}

// Filter is a TrueFilter, a FalseFilter or a CorrelationFilter.
type Filter interface {
	selects(broker.Message) bool
	check() error
	described() amqp.Described
}

// TrueFilter selects every message.
type TrueFilter struct{}

// FalseFilter selects none.
type FalseFilter struct{}

// CorrelationFilter selects a message that equals all that is set, letter case included. At least
// one thing must be.
type CorrelationFilter struct {
	CorrelationID, MessageID, To, ReplyTo, Subject, SessionID, ReplyToSessionID, ContentType string
	// Properties are application properties: text, a number or true and false.
	Properties map[string]any
}

func (TrueFilter) selects(broker.Message) bool  { return true }
func (FalseFilter) selects(broker.Message) bool { return false }

func (f CorrelationFilter) selects(m broker.Message) bool {
	content, err := amqp.ParseMessage(m.Content)
	if err != nil {
		return false
	}
	properties, err := content.DecodeProperties()
	if err != nil {
		return false
	}
	group := ""
	if properties.GroupID != nil {
		group = *properties.GroupID
	}
	for _, field := range [...]struct{ want, got string }{
		{f.CorrelationID, identifier(properties.CorrelationID)}, {f.MessageID, m.ID}, {f.To, properties.To}, {f.ReplyTo, properties.ReplyTo},
		{f.Subject, properties.Subject}, {f.SessionID, group}, {f.ReplyToSessionID, properties.ReplyToGroupID}, {f.ContentType, string(properties.ContentType)},
	} {
		if field.want != "" && field.got != field.want {
			return false
		}
	}
	application, err := content.DecodeApplicationProperties()
	if err != nil {
		return false
	}
	for name, want := range f.Properties {
		if got := application.Get(name); got == nil || !reflect.DeepEqual(plain(got), plain(want)) {
			return false
		}
	}
	return true
}

// plain is a number in the widest type of its kind, and anything else as it is: clients write
// numbers in the shortest form that holds them.
func plain(value any) any {
	if number, ok := integer(value); ok {
		return number
	}
	switch value := value.(type) {
	case int:
		return int64(value)
	case float32:
		return float64(value)
	}
	return value
}

func (TrueFilter) check() error  { return nil }
func (FalseFilter) check() error { return nil }

func (f CorrelationFilter) check() error {
	texts := f.CorrelationID + f.MessageID + f.To + f.ReplyTo + f.Subject + f.SessionID + f.ReplyToSessionID + f.ContentType
	if texts == "" && len(f.Properties) == 0 {
		return errors.New("a correlation filter needs at least one condition")
	}
	return nil
}

func checkRule(r Rule) error {
	switch {
	case r.Name == "" || len(r.Name) > maxSubscriptionName:
		return fmt.Errorf("rule %q: allowed are names of up to %d characters", r.Name, maxSubscriptionName)
	case r.Filter == nil:
		return fmt.Errorf("rule %q needs a filter: TrueFilter, FalseFilter or CorrelationFilter", r.Name)
	}
	if err := r.Filter.check(); err != nil {
		return fmt.Errorf("rule %q: %w", r.Name, err)
	}
	return nil
}

func (r Rule) named(other Rule) bool { return strings.EqualFold(r.Name, other.Name) }

// rules are those of one subscription. The mutex of the namespace guards them.
type rules struct{ all []Rule }

func newRules(given []Rule, now time.Time) *rules {
	r := &rules{all: slices.Clone(given)}
	if given == nil {
		r.all = []Rule{{Name: defaultRule, Filter: TrueFilter{}}}
	}
	for i := range r.all {
		r.all[i].created = now
	}
	return r
}

// accept reports whether a rule selects the message. A message is delivered once even if several
// rules select it, since none has an action.
func (r *rules) accept(m broker.Message) bool {
	return slices.ContainsFunc(r.all, func(rule Rule) bool { return rule.Filter.selects(m) })
}
