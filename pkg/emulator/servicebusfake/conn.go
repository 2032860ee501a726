package servicebusfake

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

const (
	// handshakeTimeout is how long a peer may take to open a connection.
	handshakeTimeout = 30 * time.Second
	// goodbyeTimeout is how long the last frames of a connection may take to reach a peer that
	// reads slowly.
	goodbyeTimeout = 2 * time.Second
)

// conn is one connection. All its state belongs to the goroutine of run; others only call wakeUp. A
// second goroutine reads frames, a third writes them.
type conn struct {
	server   *Server
	number   uint64
	socket   net.Conn
	reader   *bufio.Reader
	out      *outbox
	wake     chan struct{}
	hostname string    // the namespace that the client believes to talk to
	peer     amqp.Open // what the client said of itself
	trusted  bool      // the client has shown the key itself, and needs no tokens
	claims   claims
	sessions map[uint16]*session
	dropNext bool // Control wants the connection cut once the frame at hand is dealt with

	transactions transactions
	declared     uint64 // transactions so far
}

// closing is an error that a Close reports to the peer.
type closing struct{ reason *amqp.Error }

func (c *closing) Error() string { return string(c.reason.Condition) + ": " + c.reason.Description }

// errGoodbye ends a connection that the peer has closed.
var errGoodbye = errors.New("the peer closed the connection")

func newConn(s *Server, socket net.Conn, number uint64) *conn {
	return &conn{
		server: s, number: number, socket: socket, reader: bufio.NewReader(socket), out: newOutbox(),
		wake: make(chan struct{}, 1), sessions: map[uint16]*session{}, claims: claims{}, transactions: transactions{},
	}
}

// run serves the connection until it ends.
func (c *conn) run() {
	defer func() { _ = c.socket.Close() }()
	logger := c.server.options.Logger.With(slog.Uint64("connection", c.number))
	if err := c.socket.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return
	}
	if c.speaksHTTP() {
		c.serveHTTP(logger)
		return
	}
	err := c.handshake()
	var refused *closing
	if err != nil && !errors.As(err, &refused) {
		logger.Info("a connection was not opened", slog.Any("error", err))
		return
	}
	if err := c.socket.SetDeadline(time.Time{}); err != nil {
		return
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		// A peer that cannot be written to is treated as gone; closing the socket tells the reader.
		if c.out.run(c.socket, time.Duration(c.peer.IdleTimeout)*time.Millisecond/2) != nil {
			_ = c.socket.Close()
		}
	}()
	if err == nil {
		err = c.serve()
	}
	c.releaseAll()
	c.sayGoodbye(err)
	if errors.Is(err, errDropped) {
		_ = c.socket.Close()
	}
	_ = c.socket.SetWriteDeadline(time.Now().Add(goodbyeTimeout))
	c.out.end()
	<-written
	if errors.Is(err, errGoodbye) || errors.As(err, &refused) {
		c.linger()
	}
	if !errors.Is(err, errGoodbye) && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		logger.Info("a connection ended", slog.Any("error", err))
	}
}

// linger waits a short time for the peer to close the socket. If this side closed it while the peer
// still writes, the peer could get a reset before it has read our Close.
func (c *conn) linger() {
	if half, ok := c.socket.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil && c.socket.SetReadDeadline(time.Now().Add(goodbyeTimeout)) == nil {
		_, _ = io.Copy(io.Discard, c.socket)
	}
}

func (c *conn) sayGoodbye(err error) {
	var reason *closing
	switch {
	case errors.Is(err, errGoodbye):
		_ = c.send(0, &amqp.Close{})
	case errors.As(err, &reason):
		_ = c.send(0, &amqp.Close{Error: reason.reason})
	}
}

// serve deals with frames, and with what happens in the queues, one at a time.
func (c *conn) serve() error {
	frames, failed := make(chan amqp.Frame), make(chan error, 1)
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		failed <- c.readFrames(frames, stop)
	}()
	defer func() {
		close(stop)
		// The reader may wait for a frame: a deadline in the past ends that.
		_ = c.socket.SetReadDeadline(time.Unix(0, 1))
		<-stopped
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var err error
		select {
		case frame := <-frames:
			err = c.handle(frame)
		case err = <-failed:
		case <-c.wake:
			err = c.lookAgain()
		case <-timer.C:
			err = c.lookAgain()
		case <-c.server.done:
			err = net.ErrClosed
		}
		if err == nil && c.dropNext {
			err = errDropped
		}
		if err != nil {
			return err
		}
		c.setTimer(timer)
	}
}

// setTimer wakes the loop when something on this connection is due. Tokens expire by the server's
// clock; the wait of a client for a session is in real time.
func (c *conn) setTimer(timer *time.Timer) {
	wait, waiting := c.claims.nextExpiry(c.now())
	for _, s := range c.sessions {
		for _, l := range s.links {
			if deadline := l.deadline(); !deadline.IsZero() {
				if left := time.Until(deadline); !waiting || left < wait {
					wait, waiting = left, true
				}
			}
		}
	}
	if waiting {
		timer.Reset(wait)
	} else {
		timer.Stop()
	}
}

func (c *conn) now() time.Time { return c.server.options.Now() }

// wakeUp makes the connection look at its receivers. Any goroutine may call it.
func (c *conn) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *conn) send(channel uint16, body amqp.Composite) error {
	return c.out.frame(amqp.Frame{Channel: channel, Body: body})
}

func (c *conn) readFrame() (amqp.Frame, error) { return amqp.ReadFrame(c.reader, maxFrameSize) }

// readFrames passes frames on until one cannot be read. A peer that is silent for longer than it
// was told to be is gone.
func (c *conn) readFrames(frames chan<- amqp.Frame, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := c.socket.SetReadDeadline(time.Now().Add(idleTimeout * time.Millisecond)); err != nil {
			return err
		}
		frame, err := c.readFrame()
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			return &closing{refuse(conditionForced, "The connection was inactive for more than the allowed %d milliseconds and is closed.", idleTimeout)}
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &timeout):
			return err
		case err != nil:
			return &closing{refuse(conditionDecode, "%s", err)}
		}
		select {
		case frames <- frame:
		case <-stop:
			return nil
		}
	}
}

func (c *conn) handle(frame amqp.Frame) error {
	switch body := frame.Body.(type) {
	case nil:
		return nil
	case *amqp.Close:
		return errGoodbye
	case *amqp.Begin:
		return c.begin(frame.Channel, body)
	}
	s := c.sessions[frame.Channel]
	if s == nil {
		switch frame.Body.(type) {
		case *amqp.Detach, *amqp.End:
			// Something that ended with its session may be ended again; some clients do that.
			return nil
		}
		return &closing{refuse(conditionFraming, "%T on channel %d, on which no session was begun", frame.Body, frame.Channel)}
	}
	if s.ended {
		// After this side has ended the session, frames are ignored until the peer ends it as well.
		if _, ok := frame.Body.(*amqp.End); ok {
			delete(c.sessions, frame.Channel)
		}
		return nil
	}
	err := s.handle(frame)
	var ending *ending
	if errors.As(err, &ending) {
		return s.end(ending.reason)
	}
	return err
}

func (c *conn) begin(channel uint16, begin *amqp.Begin) error {
	if c.sessions[channel] != nil || channel > channelMax {
		return &closing{refuse(conditionFraming, "channel %d cannot begin a session", channel)}
	}
	s := newSession(c, channel, begin)
	c.sessions[channel] = s
	return c.send(channel, &amqp.Begin{
		RemoteChannel: &channel, NextOutgoingID: s.nextOutgoing, IncomingWindow: sessionWindow, OutgoingWindow: sessionWindow, HandleMax: handleMax,
	})
}

// lookAgain lets every link check what it waits for, and ends the links whose tokens have expired.
func (c *conn) lookAgain() error {
	expired := c.claims.dropExpired(c.now())
	for _, s := range c.sessions {
		for _, l := range s.links {
			if expired && !l.authorized() {
				if err := l.detach(refuse(conditionUnauthorized, "The token for this link has expired: put a new one before the old one ends.")); err != nil {
					return err
				}
				continue
			}
			if err := l.pump(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *conn) releaseAll() {
	for _, s := range c.sessions {
		s.releaseAll()
	}
}
