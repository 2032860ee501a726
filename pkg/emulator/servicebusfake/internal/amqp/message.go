package amqp

import (
	"errors"
	"fmt"
)

// The sections of a message, in the order in which they stand (3.2).
const (
	sectionHeader                = 0x70
	sectionDeliveryAnnotations   = 0x71
	sectionMessageAnnotations    = 0x72
	sectionProperties            = 0x73
	sectionApplicationProperties = 0x74
	sectionData                  = 0x75
	sectionSequence              = 0x76
	sectionValue                 = 0x77
	sectionFooter                = 0x78
)

// Message is a message taken apart as far as a broker may touch it: header and annotations are
// decoded, the sections that belong to the sender alone stay the bytes that he wrote.
type Message struct {
	Header                *Header
	DeliveryAnnotations   Map
	Annotations           Map
	Properties            []byte // the encoded section, or nil
	ApplicationProperties []byte // the encoded section, or nil
	Body                  []byte // the encoded body sections, or nil
	Footer                []byte // the encoded section, or nil
}

type (
	// Header is what the network may change on the way (3.2.1).
	Header struct {
		Durable       bool
		Priority      uint8
		TTL           *uint32 // milliseconds
		FirstAcquirer bool
		DeliveryCount uint32 // how many deliveries failed before
	}
	// Properties are the standard properties, which never change (3.2.4).
	Properties struct {
		MessageID          any // string, uint64, UUID or []byte
		UserID             []byte
		To                 string
		Subject            string
		ReplyTo            string
		CorrelationID      any // as MessageID
		ContentType        Symbol
		ContentEncoding    Symbol
		AbsoluteExpiryTime *Timestamp
		CreationTime       *Timestamp
		GroupID            *string
		GroupSequence      *uint32
		ReplyToGroupID     string
	}
)

// DefaultPriority is the priority of a message that says none.
const DefaultPriority uint8 = 4

func (*Header) descriptor() uint64     { return sectionHeader }
func (*Properties) descriptor() uint64 { return sectionProperties }

func (h *Header) visit(f *fields) {
	plain(f, &h.Durable)
	withDefault(f, &h.Priority, DefaultPriority)
	optional(f, &h.TTL)
	plain(f, &h.FirstAcquirer)
	spelledOut(f, &h.DeliveryCount)
}

func (p *Properties) visit(f *fields) {
	anything(f, &p.MessageID)
	binaries(f, &p.UserID)
	plain(f, &p.To)
	plain(f, &p.Subject)
	plain(f, &p.ReplyTo)
	anything(f, &p.CorrelationID)
	plain(f, &p.ContentType)
	plain(f, &p.ContentEncoding)
	optional(f, &p.AbsoluteExpiryTime)
	optional(f, &p.CreationTime)
	optional(f, &p.GroupID)
	optional(f, &p.GroupSequence)
	plain(f, &p.ReplyToGroupID)
}

// ParseMessage takes an encoded message apart and checks every section. The message shares memory
// with b.
func ParseMessage(b []byte) (*Message, error) {
	var m Message
	var body []byte // from the first body section to the end of b
	last := uint64(0)
	for len(b) > 0 {
		value, rest, err := Decode(b)
		if err != nil {
			return nil, err
		}
		section, _ := value.(Described)
		code, ok := section.Descriptor.(uint64)
		if !ok || code < sectionHeader || code > sectionFooter {
			return nil, fmt.Errorf("amqp: a message section with the descriptor %v", section.Descriptor)
		}
		repeatable := code == sectionData || code == sectionSequence
		if code < last || code == last && !repeatable {
			return nil, fmt.Errorf("amqp: message section 0x%x behind 0x%x", code, last)
		}
		last = code
		raw := b[: len(b)-len(rest) : len(b)-len(rest)]
		if err := m.take(code, section, raw); err != nil {
			return nil, err
		}
		if code >= sectionData && code <= sectionValue {
			if body == nil {
				body = b
			}
			m.Body = body[: len(body)-len(rest) : len(body)-len(rest)]
		}
		b = rest
	}
	return &m, nil
}

// take keeps one section. raw is its encoding.
func (m *Message) take(code uint64, section Described, raw []byte) error {
	switch code {
	case sectionHeader:
		m.Header = new(Header)
		return compose(section, m.Header)
	case sectionDeliveryAnnotations:
		return takeMap(section, &m.DeliveryAnnotations)
	case sectionMessageAnnotations:
		return takeMap(section, &m.Annotations)
	case sectionProperties:
		m.Properties = raw
		return compose(section, new(Properties))
	case sectionApplicationProperties:
		m.ApplicationProperties = raw
		var checked Map
		return takeMap(section, &checked)
	case sectionFooter:
		m.Footer = raw
		var checked Map
		return takeMap(section, &checked)
	default:
		if _, isBinary := section.Value.([]byte); code == sectionData && !isBinary {
			return fmt.Errorf("amqp: a data section made of a %T", section.Value)
		}
		return nil
	}
}

func takeMap(section Described, to *Map) error {
	m, ok := section.Value.(Map)
	if !ok {
		return fmt.Errorf("amqp: message section %v is a %T instead of a map", section.Descriptor, section.Value)
	}
	*to = m
	return nil
}

// Append adds the encoding of the message to dst.
func (m *Message) Append(dst []byte) (_ []byte, err error) {
	if m.Header != nil {
		if dst, err = appendComposite(dst, m.Header); err != nil {
			return nil, err
		}
	}
	if len(m.DeliveryAnnotations) > 0 {
		if dst, err = appendSection(dst, sectionDeliveryAnnotations, m.DeliveryAnnotations); err != nil {
			return nil, err
		}
	}
	if len(m.Annotations) > 0 {
		if dst, err = appendSection(dst, sectionMessageAnnotations, m.Annotations); err != nil {
			return nil, err
		}
	}
	for _, raw := range [][]byte{m.Properties, m.ApplicationProperties, m.Body, m.Footer} {
		dst = append(dst, raw...)
	}
	return dst, nil
}

func appendSection(dst []byte, code uint64, value any) ([]byte, error) {
	return Append(dst, Described{Descriptor: code, Value: value})
}

// DecodeProperties decodes the standard properties; a message without any has zero ones.
func (m *Message) DecodeProperties() (Properties, error) {
	var p Properties
	if m.Properties == nil {
		return p, nil
	}
	value, _, err := Decode(m.Properties)
	if err != nil {
		return p, err
	}
	return p, compose(value, &p)
}

// SetProperties replaces the standard properties.
func (m *Message) SetProperties(p Properties) (err error) {
	m.Properties, err = appendComposite(nil, &p)
	return err
}

// DecodeApplicationProperties decodes the application properties, nil if there are none.
func (m *Message) DecodeApplicationProperties() (Map, error) {
	if m.ApplicationProperties == nil {
		return nil, nil
	}
	value, _, err := Decode(m.ApplicationProperties)
	if err != nil {
		return nil, err
	}
	var properties Map
	section, _ := value.(Described)
	err = takeMap(section, &properties)
	return properties, err
}

// SetApplicationProperties replaces the application properties.
func (m *Message) SetApplicationProperties(properties Map) (err error) {
	m.ApplicationProperties, err = appendSection(nil, sectionApplicationProperties, properties)
	return err
}

// SetValue makes the body one value.
func (m *Message) SetValue(value any) (err error) {
	m.Body, err = appendSection(nil, sectionValue, value)
	return err
}

// Value is the body where that is one value.
func (m *Message) Value() (any, error) {
	section, rest, err := Decode(m.Body)
	if err != nil {
		return nil, err
	}
	described, _ := section.(Described)
	if described.Descriptor != uint64(sectionValue) || len(rest) > 0 {
		return nil, errors.New("amqp: the body of the message is not one value")
	}
	return described.Value, nil
}

// Data is the contents of the body's data sections, in order; nil if the body is not binary.
func (m *Message) Data() [][]byte {
	var data [][]byte
	for b := m.Body; len(b) > 0; {
		value, rest, err := Decode(b)
		if err != nil {
			return nil
		}
		section, _ := value.(Described)
		content, ok := section.Value.([]byte)
		if !ok || section.Descriptor != uint64(sectionData) {
			return nil
		}
		data = append(data, content)
		b = rest
	}
	return data
}

// DecodeDeclare reads the body of a message to a coordinator: a *Declare or a *Discharge.
func DecodeDeclare(m *Message) (Composite, error) {
	value, err := m.Value()
	if err != nil {
		return nil, err
	}
	described, _ := value.(Described)
	switch described.Descriptor {
	case uint64(0x31):
		declare := new(Declare)
		return declare, compose(value, declare)
	case uint64(0x32):
		discharge := new(Discharge)
		return discharge, compose(value, discharge)
	default:
		return nil, fmt.Errorf("amqp: descriptor %v neither declares nor discharges a transaction", described.Descriptor)
	}
}
