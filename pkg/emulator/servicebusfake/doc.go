// Package servicebusfake is an in-process stand-in of one Azure Service Bus namespace: it speaks
// AMQP 1.0 on a real socket, so that official clients of any language work against it unchanged.
//
// It holds queues, and topics with their subscriptions, with everything a client can reach through
// AMQP: peek-lock and receive-and-delete, settlement, sessions, scheduling, deferral, duplicate
// detection, expiry, dead-letter queues, batches, peeking, transactions, and tokens that are really
// checked. Of the rules of subscriptions it has all but those in SQL; of the HTTP management API it
// has what reads queues, on the same port. What it stores is lost when it stops. It knows nothing
// of who uses it, and never treats one client differently from another.
//
// Start reading at [Start]. What a queue does with its messages is in package broker, the bytes are
// in package amqp; what stands between is here: server.go, conn.go (one connection), session.go,
// inbound.go and outbound.go (links), and the nodes that links attach to: queue.go, topic.go,
// management.go, cbs.go, transaction.go. http.go and atom*.go have the management API. A test that
// needs a fault scripts it with [Server.Control].
//
// The API of this package is kept: a change that breaks it is in CHANGELOG.md.
package servicebusfake
