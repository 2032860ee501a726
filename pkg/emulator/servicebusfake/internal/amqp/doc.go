// Package amqp encodes and decodes AMQP 1.0: values, performatives, frames and messages, as a
// broker needs them.
//
// It knows nothing of connections, brokers or Service Bus: bytes come in, Go values go out, and
// back. All bytes are taken to be hostile: every length is checked against what is there, and
// nesting is bounded.
//
// Start reading at [Decode] and [Append] for values, at [ReadFrame] and [AppendFrame] for what
// travels on a connection, and at [Message] for what is carried inside. Section numbers in comments
// are those of the OASIS AMQP 1.0 specification.
package amqp
