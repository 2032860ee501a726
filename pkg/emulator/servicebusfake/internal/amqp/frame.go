package amqp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Kinds of frames (2.3.1).
const (
	FrameAMQP uint8 = 0
	FrameSASL uint8 = 1
)

// MinMaxFrameSize is the smallest limit a peer may set on frames, and the limit until Open was
// exchanged (2.3.1).
const MinMaxFrameSize = 512

const frameHeaderSize = 8

// Frame is one unit on the wire.
type Frame struct {
	Kind    uint8
	Channel uint16
	// Body is nil in an empty frame, which is sent only to show that the peer lives.
	Body Composite
	// Payload is what follows the body: a part of a message, behind a Transfer.
	Payload []byte
}

// ReadFrame reads one frame of at most maxSize bytes. The payload is not shared with any other
// frame.
func ReadFrame(r io.Reader, maxSize uint32) (Frame, error) {
	var header [frameHeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Frame{}, err
	}
	size := binary.BigEndian.Uint32(header[:])
	if size > maxSize {
		return Frame{}, fmt.Errorf("amqp: a frame of %d bytes; at most %d were agreed", size, maxSize)
	}
	bodyAt := uint32(header[4]) * 4
	if bodyAt < frameHeaderSize || bodyAt > size {
		return Frame{}, fmt.Errorf("amqp: a frame of %d bytes whose body starts at %d", size, bodyAt)
	}
	rest := make([]byte, size-frameHeaderSize)
	if _, err := io.ReadFull(r, rest); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	frame := Frame{Kind: header[5], Channel: binary.BigEndian.Uint16(header[6:])}
	if frame.Kind > FrameSASL {
		return Frame{}, fmt.Errorf("amqp: a frame of the unknown kind %d", frame.Kind)
	}
	body := rest[bodyAt-frameHeaderSize:]
	if len(body) == 0 {
		return frame, nil
	}
	var err error
	frame.Body, frame.Payload, err = decodePerformative(body)
	return frame, err
}

func decodePerformative(b []byte) (Composite, []byte, error) {
	value, rest, err := Decode(b)
	if err != nil {
		return nil, nil, err
	}
	described, _ := value.(Described)
	code, ok := described.Descriptor.(uint64)
	if !ok {
		return nil, nil, errors.New("amqp: a frame whose body is not a performative")
	}
	body, err := newPerformative(code)
	if err != nil {
		return nil, nil, err
	}
	return body, rest, compose(value, body)
}

// AppendFrame adds the encoding of a frame to dst.
func AppendFrame(dst []byte, frame Frame) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, frameHeaderSize/4, frame.Kind, byte(frame.Channel>>8), byte(frame.Channel))
	if frame.Body != nil {
		var err error
		if dst, err = appendComposite(dst, frame.Body); err != nil {
			return nil, err
		}
	}
	dst = append(dst, frame.Payload...)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst, nil
}
