package servicebusfake

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

// Protocol headers (2.2, 5.3.2).
const (
	protocolAMQP = "AMQP\x00\x01\x00\x00"
	protocolSASL = "AMQP\x03\x01\x00\x00"
)

// SASL mechanisms, in the order in which the service offers them. All but PLAIN prove nothing:
// their clients present tokens to $cbs.
const (
	mechanismCBS       amqp.Symbol = "MSSBCBS"
	mechanismPlain     amqp.Symbol = "PLAIN"
	mechanismAnonymous amqp.Symbol = "ANONYMOUS"
	mechanismExternal  amqp.Symbol = "EXTERNAL"
)

const (
	saslOK   uint8 = 0
	saslAuth uint8 = 1
)

// What the service says in its Open.
const (
	maxFrameSize = 64 * 1024
	channelMax   = 4999
	handleMax    = 255
	idleTimeout  = 240_000 // milliseconds
)

// handshake brings a connection to the point where both sides have sent Open.
func (c *conn) handshake() error {
	header, err := c.readProtocol()
	if err != nil {
		return err
	}
	if header == protocolSASL {
		if err := c.authenticate(); err != nil {
			return err
		}
		if header, err = c.readProtocol(); err != nil {
			return err
		}
	}
	if header != protocolAMQP {
		// A peer with another protocol is told the one that is spoken here (2.2).
		_, _ = io.WriteString(c.socket, protocolSASL)
		return fmt.Errorf("the peer speaks another protocol: % x", header)
	}
	if _, err := io.WriteString(c.socket, protocolAMQP); err != nil {
		return err
	}
	frame, err := c.readFrame()
	if err != nil {
		return err
	}
	open, ok := frame.Body.(*amqp.Open)
	if !ok {
		return fmt.Errorf("%T instead of an open", frame.Body)
	}
	return c.opened(open)
}

func (c *conn) readProtocol() (string, error) {
	var header [8]byte
	_, err := io.ReadFull(c.reader, header[:])
	return string(header[:]), err
}

func (c *conn) opened(open *amqp.Open) error {
	v, err := c.intercept(Request{Op: OpOpen, Entity: open.Hostname})
	if err != nil {
		return err
	}
	if open.MaxFrameSize < amqp.MinMaxFrameSize {
		return fmt.Errorf("a peer that takes frames of %d bytes at most; the protocol's least is %d", open.MaxFrameSize, amqp.MinMaxFrameSize)
	}
	c.hostname = hostOf(open.Hostname)
	c.peer = *open
	if !v.silent {
		err = c.send(0, &amqp.Open{
			ContainerID: fmt.Sprintf("feedscale-%d", c.number), MaxFrameSize: maxFrameSize, ChannelMax: channelMax, IdleTimeout: idleTimeout,
		})
	}
	if v.refusal != nil {
		return errors.Join(err, &closing{v.refusal})
	}
	return err
}

func (c *conn) authenticate() error {
	mechanisms := &amqp.SASLMechanisms{Mechanisms: []amqp.Symbol{mechanismCBS, mechanismPlain, mechanismAnonymous, mechanismExternal}}
	if err := c.writeSASL(protocolSASL, mechanisms); err != nil {
		return err
	}
	frame, err := c.readFrame()
	if err != nil {
		return err
	}
	init, ok := frame.Body.(*amqp.SASLInit)
	if !ok {
		return fmt.Errorf("%T instead of a SASL init", frame.Body)
	}
	outcome := saslOK
	switch init.Mechanism {
	case mechanismCBS, mechanismAnonymous, mechanismExternal:
	case mechanismPlain:
		c.trusted = c.plainPassword(init.InitialResponse)
		if !c.trusted {
			outcome = saslAuth
		}
	default:
		outcome = saslAuth
	}
	if err := c.writeSASL("", &amqp.SASLOutcome{Code: outcome}); err != nil {
		return err
	}
	if outcome != saslOK {
		return fmt.Errorf("the client was refused with the mechanism %s", init.Mechanism)
	}
	return nil
}

// plainPassword checks name and key as PLAIN brings them (RFC 4616).
func (c *conn) plainPassword(response []byte) bool {
	parts := bytes.Split(response, []byte{0})
	o := c.server.options
	return len(parts) == 3 && string(parts[1]) == o.KeyName && subtle.ConstantTimeCompare(parts[2], []byte(o.Key)) == 1
}

// writeSASL writes before the outbox runs: until SASL is over both sides wait for each other.
func (c *conn) writeSASL(prefix string, body amqp.Composite) error {
	frame, err := amqp.AppendFrame([]byte(prefix), amqp.Frame{Kind: amqp.FrameSASL, Body: body})
	if err != nil {
		return err
	}
	_, err = c.socket.Write(frame)
	return err
}

// hostOf is a host without its port, in lower case.
func hostOf(address string) string {
	host := strings.ToLower(address)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return strings.Trim(host, "[]")
}
