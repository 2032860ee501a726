package amqp

type (
	// Source is where a link takes messages from (3.5.3).
	Source struct {
		Address               string
		Durable               uint32
		ExpiryPolicy          Symbol
		Timeout               uint32 // seconds
		Dynamic               bool
		DynamicNodeProperties Map
		DistributionMode      Symbol
		Filter                Map
		DefaultOutcome        any
		Outcomes              []Symbol
		Capabilities          []Symbol
	}
	// Target is where a link puts messages (3.5.4).
	Target struct {
		Address               string
		Durable               uint32
		ExpiryPolicy          Symbol
		Timeout               uint32 // seconds
		Dynamic               bool
		DynamicNodeProperties Map
		Capabilities          []Symbol
	}
	// Coordinator is the target of a link that declares and discharges transactions (4.5.1).
	Coordinator struct{ Capabilities []Symbol }
	// Error says why something was refused or ended (2.8.14).
	Error struct {
		Condition   Symbol
		Description string
		Info        Map
	}
)

func (*Source) descriptor() uint64      { return 0x28 }
func (*Target) descriptor() uint64      { return 0x29 }
func (*Coordinator) descriptor() uint64 { return 0x30 }
func (*Error) descriptor() uint64       { return 0x1d }

const expireAtSessionEnd = Symbol("session-end")

func (s *Source) visit(f *fields) {
	plain(f, &s.Address)
	plain(f, &s.Durable)
	withDefault(f, &s.ExpiryPolicy, expireAtSessionEnd)
	plain(f, &s.Timeout)
	plain(f, &s.Dynamic)
	mapping(f, &s.DynamicNodeProperties)
	plain(f, &s.DistributionMode)
	mapping(f, &s.Filter)
	anything(f, &s.DefaultOutcome)
	symbols(f, &s.Outcomes)
	symbols(f, &s.Capabilities)
}

func (t *Target) visit(f *fields) {
	plain(f, &t.Address)
	plain(f, &t.Durable)
	withDefault(f, &t.ExpiryPolicy, expireAtSessionEnd)
	plain(f, &t.Timeout)
	plain(f, &t.Dynamic)
	mapping(f, &t.DynamicNodeProperties)
	symbols(f, &t.Capabilities)
}

func (c *Coordinator) visit(f *fields) { symbols(f, &c.Capabilities) }

func (e *Error) visit(f *fields) {
	required(f, &e.Condition)
	plain(f, &e.Description)
	mapping(f, &e.Info)
}
