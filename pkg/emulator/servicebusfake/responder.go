package servicebusfake

import (
	"iter"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

// responder is a node that answers requests: what a client sends on one link is answered on
// another, see replyLink.
type responder struct {
	conn    *conn
	session *session
	node    string // which node it is
}

// request is a message to a node that answers.
type request struct {
	properties amqp.Map // application properties
	value      any      // the body
}

// response is its answer. Status is that of HTTP.
type response struct {
	status      int
	description string
	condition   amqp.Symbol // of a failure
	value       any         // the body
	silent      bool        // it is not sent
}

// statusKeys are the application properties that tell the status; $cbs and the management nodes
// spell them differently, and $cbs gives no condition.
type statusKeys struct{ code, description, condition string }

// respond reads a request, has it handled, and sends the response.
func (n responder) respond(d *delivery, keys statusKeys, handle func(*request) (response, error)) (amqp.State, error) {
	m, err := amqp.ParseMessage(d.payload)
	if err != nil {
		return nil, &linkError{refuse(conditionDecode, "%s", err)}
	}
	properties, err := m.DecodeProperties()
	if err != nil {
		return nil, &linkError{refuse(conditionDecode, "%s", err)}
	}
	to := n.replyLink(properties.ReplyTo)
	if to == nil {
		return &amqp.Rejected{Error: refuse(conditionNotFound, "No link takes replies to %q.", properties.ReplyTo)}, nil
	}
	application, err := m.DecodeApplicationProperties()
	if err != nil {
		return nil, &linkError{refuse(conditionDecode, "%s", err)}
	}
	// A body that is no value leaves the request without one, which its handler refuses.
	value, _ := m.Value()
	answer, err := handle(&request{properties: application, value: value})
	if err != nil || answer.silent {
		return &amqp.Accepted{}, err
	}
	content, err := answer.encode(properties.MessageID, keys)
	if err != nil {
		return nil, &closing{refuse(conditionInternal, "%s", err)}
	}
	pending := to.supply.(*replies)
	pending.pending = append(pending.pending, content)
	return &amqp.Accepted{}, to.pump()
}

func (r response) encode(correlationID any, keys statusKeys) ([]byte, error) {
	var m amqp.Message
	if err := m.SetProperties(amqp.Properties{CorrelationID: correlationID}); err != nil {
		return nil, err
	}
	properties := amqp.Map{
		{Key: keys.code, Value: int32(r.status)},
		{Key: keys.description, Value: r.description},
	}
	if r.condition != "" && keys.condition != "" {
		properties = append(properties, amqp.Pair{Key: keys.condition, Value: r.condition})
	}
	if err := m.SetApplicationProperties(properties); err != nil {
		return nil, err
	}
	if err := m.SetValue(r.value); err != nil {
		return nil, err
	}
	return m.Append(nil)
}

// replyLink is the link on which the client takes answers: the one that reply-to names, by the
// address of its target or by its own name, or else the one that it has attached to the same node
// in the same session. Clients differ in what they rely on.
func (n responder) replyLink(replyTo string) *outbound {
	for _, s := range n.conn.sessions {
		for l, r := range s.replyLinks() {
			if replyTo != "" && (r.address == replyTo || r.name == replyTo) {
				return l
			}
		}
	}
	for l, r := range n.session.replyLinks() {
		if r.node == n.node {
			return l
		}
	}
	return nil
}

func (s *session) replyLinks() iter.Seq2[*outbound, *replies] {
	return func(yield func(*outbound, *replies) bool) {
		for _, l := range s.links {
			out, ok := l.(*outbound)
			if !ok || out.ended {
				continue
			}
			if r, ok := out.supply.(*replies); ok && !yield(out, r) {
				return
			}
		}
	}
}

// replies supplies a link with answers.
type replies struct {
	node    string // whose answers
	address string // of the link's target
	name    string // of the link
	pending [][]byte
}

func newReplies(node string, a *amqp.Attach) *replies {
	r := &replies{node: node, name: a.Name}
	if a.Target != nil {
		r.address = a.Target.Address
	}
	return r
}

func (r *replies) alive() *amqp.Error { return nil }

func (r *replies) next() (outgoing, bool, *amqp.Error) {
	if len(r.pending) == 0 {
		return outgoing{}, false, nil
	}
	content := r.pending[0]
	r.pending = r.pending[1:]
	return outgoing{content: content, sent: func(uint32) {}}, true, nil
}

func (r *replies) settle(_ uint32, state amqp.State) (amqp.State, error) { return state, nil }

func (r *replies) release() {}
