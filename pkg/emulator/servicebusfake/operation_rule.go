package servicebusfake

import (
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// Descriptors of what enumerate-rules answers
// (https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-request-response, rule
// operations).
const (
	descriptorRule              uint64 = 0x13700000004
	descriptorNoAction          uint64 = 0x13700000005
	descriptorTrueFilter        uint64 = 0x1370000007
	descriptorFalseFilter       uint64 = 0x1370000008
	descriptorCorrelationFilter uint64 = 0x1370000009
)

// operationNamed is an operation on the rules of a subscription, nil if the name is none or the
// entity has no rules.
func (r *rules) operationNamed(name string) operation {
	if r == nil {
		return nil
	}
	switch name {
	case "com.microsoft:add-rule":
		return r.add
	case "com.microsoft:remove-rule":
		return r.remove
	case "com.microsoft:enumerate-rules":
		return r.enumerate
	default:
		return nil
	}
}

func (r *rules) add(a arguments, _ *broker.Queue, now time.Time) (response, error) {
	name, err := a.text("rule-name")
	if err != nil {
		return response{}, err
	}
	description, isMap := a.body.Get("rule-description").(amqp.Map)
	if !isMap {
		return response{}, badArgument{"rule-description"}
	}
	if description.Get("sql-rule-action") != nil {
		return notOffered("Actions of rules, which are written in SQL, are not offered here.")
	}
	rule := Rule{Name: name, created: now}
	if sql, isSQL := description.Get("sql-filter").(amqp.Map); isSQL {
		// The one true and the one false filter of clients are written so.
		switch expression, _ := sql.Get("expression").(string); expression {
		case "1=1":
			rule.Filter = TrueFilter{}
		case "1=0":
			rule.Filter = FalseFilter{}
		default:
			return notOffered("SQL filters are not offered here: use a correlation filter.")
		}
	} else if correlation, isCorrelation := description.Get("correlation-filter").(amqp.Map); isCorrelation {
		rule.Filter = correlationFilter(arguments{correlation})
	}
	if err := checkRule(rule); err != nil {
		return response{status: 400, description: err.Error(), condition: conditionArgument}, nil
	}
	if slices.ContainsFunc(r.all, rule.named) {
		return response{status: 409, description: "The rule exists already.", condition: conditionAlreadyExists}, nil
	}
	r.all = append(r.all, rule)
	return ok(nil)
}

func notOffered(description string) (response, error) {
	return response{status: 501, description: description, condition: conditionNotImplemented}, nil
}

func correlationFilter(a arguments) CorrelationFilter {
	filter := CorrelationFilter{
		CorrelationID: textOr(a.optionalText("correlation-id")), MessageID: textOr(a.optionalText("message-id")),
		To: textOr(a.optionalText("to")), ReplyTo: textOr(a.optionalText("reply-to")), Subject: textOr(a.optionalText("label")),
		SessionID: textOr(a.optionalText("session-id")), ReplyToSessionID: textOr(a.optionalText("reply-to-session-id")),
		ContentType: textOr(a.optionalText("content-type")), Properties: map[string]any{},
	}
	conditions, _ := a.body.Get("properties").(amqp.Map)
	for _, property := range propertiesOf(conditions) {
		filter.Properties[property.Name] = property.Value
	}
	return filter
}

func (r *rules) remove(a arguments, _ *broker.Queue, _ time.Time) (response, error) {
	name, err := a.text("rule-name")
	if err != nil {
		return response{}, err
	}
	at := slices.IndexFunc(r.all, Rule{Name: name}.named)
	if at < 0 {
		missing := refuse(conditionNotFound, "The messaging entity %q could not be found.", name)
		return response{status: 404, description: missing.Description, condition: missing.Condition}, nil
	}
	r.all = slices.Delete(r.all, at, at+1)
	return ok(nil)
}

func (r *rules) enumerate(a arguments, _ *broker.Queue, _ time.Time) (response, error) {
	top, err := a.integer("top")
	if err != nil {
		return response{}, err
	}
	skip, err := a.integer("skip")
	if err != nil {
		return response{}, err
	}
	page := r.all[min(max(int(skip), 0), len(r.all)):]
	page = page[:min(max(int(top), 0), len(page))]
	if len(page) == 0 {
		return noContent("")
	}
	described := make(amqp.List, len(page))
	for i, rule := range page {
		described[i] = body("rule-description", amqp.Described{Descriptor: descriptorRule, Value: amqp.List{
			rule.Filter.described(), amqp.Described{Descriptor: descriptorNoAction, Value: amqp.List{}}, rule.Name, amqp.NewTimestamp(rule.created),
		}})
	}
	return ok(body("rules", described))
}

func (TrueFilter) described() amqp.Described {
	return amqp.Described{Descriptor: descriptorTrueFilter, Value: amqp.List{}}
}

func (FalseFilter) described() amqp.Described {
	return amqp.Described{Descriptor: descriptorFalseFilter, Value: amqp.List{}}
}

func (f CorrelationFilter) described() amqp.Described {
	fields := amqp.List{}
	for _, text := range [...]string{f.CorrelationID, f.MessageID, f.To, f.ReplyTo, f.Subject, f.SessionID, f.ReplyToSessionID, f.ContentType} {
		if text == "" {
			fields = append(fields, nil)
		} else {
			fields = append(fields, text)
		}
	}
	properties := amqp.Map{}
	for name, value := range f.Properties {
		properties = append(properties, amqp.Pair{Key: name, Value: plain(value)})
	}
	return amqp.Described{Descriptor: descriptorCorrelationFilter, Value: append(fields, properties)}
}
