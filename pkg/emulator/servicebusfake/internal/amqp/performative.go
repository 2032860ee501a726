package amqp

import "fmt"

// Roles of a link endpoint.
const (
	RoleSender   = false
	RoleReceiver = true
)

// Settlement modes of a link (2.8.2, 2.8.3).
const (
	SenderUnsettled uint8 = 0
	SenderSettled   uint8 = 1
	SenderMixed     uint8 = 2

	ReceiverFirst  uint8 = 0
	ReceiverSecond uint8 = 1
)

type (
	// Open negotiates a connection (2.7.1).
	Open struct {
		ContainerID  string
		Hostname     string
		MaxFrameSize uint32 // bytes; absent means no limit
		ChannelMax   uint16
		// milliseconds without a frame after which this peer gives up; 0 = never
		IdleTimeout         uint32
		OutgoingLocales     []Symbol
		IncomingLocales     []Symbol
		OfferedCapabilities []Symbol
		DesiredCapabilities []Symbol
		Properties          Map
	}
	// Begin starts a session on a channel (2.7.2).
	Begin struct {
		RemoteChannel       *uint16
		NextOutgoingID      uint32
		IncomingWindow      uint32 // transfer frames
		OutgoingWindow      uint32 // transfer frames
		HandleMax           uint32
		OfferedCapabilities []Symbol
		DesiredCapabilities []Symbol
		Properties          Map
	}
	// Attach attaches a link to a session (2.7.3). Of Target and Coordinator at most one is set.
	Attach struct {
		Name                 string
		Handle               uint32
		Role                 bool
		SenderSettleMode     uint8
		ReceiverSettleMode   uint8
		Source               *Source
		Target               *Target
		Coordinator          *Coordinator
		Unsettled            Map
		IncompleteUnsettled  bool
		InitialDeliveryCount *uint32
		MaxMessageSize       uint64 // bytes; 0 = no limit
		OfferedCapabilities  []Symbol
		DesiredCapabilities  []Symbol
		Properties           Map
	}
	// Flow updates the state of a session and, where Handle is set, of a link (2.7.4).
	Flow struct {
		NextIncomingID *uint32
		IncomingWindow uint32
		NextOutgoingID uint32
		OutgoingWindow uint32
		Handle         *uint32
		DeliveryCount  *uint32
		LinkCredit     *uint32
		Available      *uint32
		Drain          bool
		Echo           bool
		Properties     Map
	}
	// Transfer carries a message or a part of one (2.7.5). Its bytes are the payload of the frame.
	Transfer struct {
		Handle             uint32
		DeliveryID         *uint32
		DeliveryTag        []byte
		MessageFormat      *uint32
		Settled            bool
		More               bool
		ReceiverSettleMode *uint8
		State              State
		Resume             bool
		Aborted            bool
		Batchable          bool
	}
	// Disposition tells the state of deliveries First to Last (2.7.6).
	Disposition struct {
		Role      bool
		First     uint32
		Last      *uint32
		Settled   bool
		State     State
		Batchable bool
	}
	// Detach detaches a link, for good where Closed (2.7.7).
	Detach struct {
		Handle uint32
		Closed bool
		Error  *Error
	}
	// End ends a session (2.7.8).
	End struct{ Error *Error }
	// Close closes the connection (2.7.9).
	Close struct{ Error *Error }

	// SASLMechanisms offers the ways to authenticate (5.3.3.1).
	SASLMechanisms struct{ Mechanisms []Symbol }
	// SASLInit chooses one (5.3.3.2).
	SASLInit struct {
		Mechanism       Symbol
		InitialResponse []byte
		Hostname        string
	}
	// SASLOutcome ends the exchange; code 0 is success, 1 a refused identity (5.3.3.6).
	SASLOutcome struct {
		Code           uint8
		AdditionalData []byte
	}
)

func (*Open) descriptor() uint64        { return 0x10 }
func (*Begin) descriptor() uint64       { return 0x11 }
func (*Attach) descriptor() uint64      { return 0x12 }
func (*Flow) descriptor() uint64        { return 0x13 }
func (*Transfer) descriptor() uint64    { return 0x14 }
func (*Disposition) descriptor() uint64 { return 0x15 }
func (*Detach) descriptor() uint64      { return 0x16 }
func (*End) descriptor() uint64         { return 0x17 }
func (*Close) descriptor() uint64       { return 0x18 }

func (*SASLMechanisms) descriptor() uint64 { return 0x40 }
func (*SASLInit) descriptor() uint64       { return 0x41 }
func (*SASLOutcome) descriptor() uint64    { return 0x44 }

func newPerformative(code uint64) (Composite, error) {
	switch code {
	case 0x10:
		return new(Open), nil
	case 0x11:
		return new(Begin), nil
	case 0x12:
		return new(Attach), nil
	case 0x13:
		return new(Flow), nil
	case 0x14:
		return new(Transfer), nil
	case 0x15:
		return new(Disposition), nil
	case 0x16:
		return new(Detach), nil
	case 0x17:
		return new(End), nil
	case 0x18:
		return new(Close), nil
	case 0x40:
		return new(SASLMechanisms), nil
	case 0x41:
		return new(SASLInit), nil
	case 0x44:
		return new(SASLOutcome), nil
	default:
		return nil, fmt.Errorf("amqp: no performative has the code 0x%x", code)
	}
}

func (o *Open) visit(f *fields) {
	required(f, &o.ContainerID)
	plain(f, &o.Hostname)
	withDefault(f, &o.MaxFrameSize, 1<<32-1)
	withDefault(f, &o.ChannelMax, 1<<16-1)
	plain(f, &o.IdleTimeout)
	symbols(f, &o.OutgoingLocales)
	symbols(f, &o.IncomingLocales)
	symbols(f, &o.OfferedCapabilities)
	symbols(f, &o.DesiredCapabilities)
	mapping(f, &o.Properties)
}

func (b *Begin) visit(f *fields) {
	optional(f, &b.RemoteChannel)
	required(f, &b.NextOutgoingID)
	required(f, &b.IncomingWindow)
	required(f, &b.OutgoingWindow)
	withDefault(f, &b.HandleMax, 1<<32-1)
	symbols(f, &b.OfferedCapabilities)
	symbols(f, &b.DesiredCapabilities)
	mapping(f, &b.Properties)
}

func (a *Attach) visit(f *fields) {
	required(f, &a.Name)
	required(f, &a.Handle)
	required(f, &a.Role)
	withDefault(f, &a.SenderSettleMode, SenderMixed)
	withDefault(f, &a.ReceiverSettleMode, ReceiverFirst)
	nested(f, &a.Source)
	a.visitTarget(f)
	mapping(f, &a.Unsettled)
	plain(f, &a.IncompleteUnsettled)
	optional(f, &a.InitialDeliveryCount)
	plain(f, &a.MaxMessageSize)
	symbols(f, &a.OfferedCapabilities)
	symbols(f, &a.DesiredCapabilities)
	mapping(f, &a.Properties)
}

// visitTarget is the one field that takes two types: a target, or the coordinator of transactions
// (4.5.1).
func (a *Attach) visitTarget(f *fields) {
	if f.writing {
		if a.Coordinator != nil {
			f.writeComposite(a.Coordinator)
			return
		}
		nested(f, &a.Target)
		return
	}
	if f.index < len(f.values) {
		if value, ok := f.values[f.index].(Described); ok && value.Descriptor == new(Coordinator).descriptor() {
			nested(f, &a.Coordinator)
			return
		}
	}
	nested(f, &a.Target)
}

func (w *Flow) visit(f *fields) {
	optional(f, &w.NextIncomingID)
	required(f, &w.IncomingWindow)
	required(f, &w.NextOutgoingID)
	required(f, &w.OutgoingWindow)
	optional(f, &w.Handle)
	optional(f, &w.DeliveryCount)
	optional(f, &w.LinkCredit)
	optional(f, &w.Available)
	plain(f, &w.Drain)
	plain(f, &w.Echo)
	mapping(f, &w.Properties)
}

func (t *Transfer) visit(f *fields) {
	required(f, &t.Handle)
	optional(f, &t.DeliveryID)
	binaries(f, &t.DeliveryTag)
	optional(f, &t.MessageFormat)
	plain(f, &t.Settled)
	plain(f, &t.More)
	optional(f, &t.ReceiverSettleMode)
	deliveryState(f, &t.State)
	plain(f, &t.Resume)
	plain(f, &t.Aborted)
	plain(f, &t.Batchable)
}

func (d *Disposition) visit(f *fields) {
	required(f, &d.Role)
	required(f, &d.First)
	optional(f, &d.Last)
	plain(f, &d.Settled)
	deliveryState(f, &d.State)
	plain(f, &d.Batchable)
}

func (d *Detach) visit(f *fields) {
	required(f, &d.Handle)
	plain(f, &d.Closed)
	nested(f, &d.Error)
}

func (e *End) visit(f *fields) { nested(f, &e.Error) }

func (c *Close) visit(f *fields) { nested(f, &c.Error) }

func (s *SASLMechanisms) visit(f *fields) { symbols(f, &s.Mechanisms) }

func (s *SASLInit) visit(f *fields) {
	required(f, &s.Mechanism)
	binaries(f, &s.InitialResponse)
	plain(f, &s.Hostname)
}

func (s *SASLOutcome) visit(f *fields) {
	required(f, &s.Code)
	binaries(f, &s.AdditionalData)
}
