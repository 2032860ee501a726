package amqp

import "fmt"

// State is the state of a delivery: one of the types below.
type State interface {
	Composite
	deliveryState()
}

type (
	// Received tells how much of a delivery has arrived (3.4.1).
	Received struct {
		SectionNumber uint32
		SectionOffset uint64
	}
	// Accepted: the receiver has dealt with the message (3.4.2).
	Accepted struct{}
	// Rejected: the message is invalid (3.4.3). Service Bus clients dead-letter with it.
	Rejected struct{ Error *Error }
	// Released: the message was not dealt with (3.4.4).
	Released struct{}
	// Modified: as released, with changes to the message (3.4.5). Service Bus clients abandon and
	// defer with it.
	Modified struct {
		DeliveryFailed     bool
		UndeliverableHere  bool
		MessageAnnotations Map
	}
	// Declared answers Declare with the transaction's id (4.5.4).
	Declared struct{ TransactionID []byte }
	// Transactional is a state that counts once the transaction is committed (4.5.5).
	Transactional struct {
		TransactionID []byte
		Outcome       State
	}

	// Declare asks for a transaction; it is the body of a message to a Coordinator (4.5.2).
	Declare struct{ GlobalID any }
	// Discharge commits a transaction or, where Fail, rolls it back (4.5.3).
	Discharge struct {
		TransactionID []byte
		Fail          bool
	}
)

func (*Received) descriptor() uint64      { return 0x23 }
func (*Accepted) descriptor() uint64      { return 0x24 }
func (*Rejected) descriptor() uint64      { return 0x25 }
func (*Released) descriptor() uint64      { return 0x26 }
func (*Modified) descriptor() uint64      { return 0x27 }
func (*Declare) descriptor() uint64       { return 0x31 }
func (*Discharge) descriptor() uint64     { return 0x32 }
func (*Declared) descriptor() uint64      { return 0x33 }
func (*Transactional) descriptor() uint64 { return 0x34 }

func (*Received) deliveryState()      {}
func (*Accepted) deliveryState()      {}
func (*Rejected) deliveryState()      {}
func (*Released) deliveryState()      {}
func (*Modified) deliveryState()      {}
func (*Declared) deliveryState()      {}
func (*Transactional) deliveryState() {}

func (r *Received) visit(f *fields) {
	required(f, &r.SectionNumber)
	required(f, &r.SectionOffset)
}
func (*Accepted) visit(*fields)     {}
func (r *Rejected) visit(f *fields) { nested(f, &r.Error) }
func (*Released) visit(*fields)     {}
func (m *Modified) visit(f *fields) {
	plain(f, &m.DeliveryFailed)
	plain(f, &m.UndeliverableHere)
	mapping(f, &m.MessageAnnotations)
}
func (d *Declare) visit(f *fields) { anything(f, &d.GlobalID) }
func (d *Discharge) visit(f *fields) {
	binaries(f, &d.TransactionID)
	plain(f, &d.Fail)
}
func (d *Declared) visit(f *fields) { binaries(f, &d.TransactionID) }
func (t *Transactional) visit(f *fields) {
	binaries(f, &t.TransactionID)
	deliveryState(f, &t.Outcome)
}

func newState(code any) (State, error) {
	switch code {
	case uint64(0x23):
		return new(Received), nil
	case uint64(0x24):
		return new(Accepted), nil
	case uint64(0x25):
		return new(Rejected), nil
	case uint64(0x26):
		return new(Released), nil
	case uint64(0x27):
		return new(Modified), nil
	case uint64(0x33):
		return new(Declared), nil
	case uint64(0x34):
		return new(Transactional), nil
	default:
		return nil, fmt.Errorf("amqp: no delivery state has the code %v", code)
	}
}

// deliveryState is a field that holds one of several composites, or nothing.
func deliveryState(f *fields, p *State) {
	if f.writing {
		if *p == nil {
			f.write(nil)
			return
		}
		f.writeComposite(*p)
		return
	}
	value := f.read()
	if value == nil {
		*p = nil
		return
	}
	described, _ := value.(Described)
	state, err := newState(described.Descriptor)
	if err == nil {
		err = compose(value, state)
	}
	if err != nil {
		if f.err == nil {
			f.err = err
		}
		return
	}
	*p = state
}
