package servicebusfake

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// The shared access key of a stand-in that was not given one. It guards nothing but made-up
// messages on a developer's machine, which is why it may be known to everybody.
const (
	DefaultKeyName = "RootManageSharedAccessKey"
	DefaultKey     = "ZmVlZHNjYWxlIGRldmVsb3BtZW50IGtleSwgbm8gc2VjcmV0"
)

// QueueSpec describes a queue; the zero value of every field but Name is the service's default.
type QueueSpec = broker.Spec

// Options configure a stand-in. The zero value works.
type Options struct {
	// Addr is the address to listen on. Default: a free port of 127.0.0.1.
	Addr string
	// TLS makes the listener speak TLS.
	TLS *tls.Config
	// KeyName and Key are the shared access key that tokens must be signed with. Default:
	// DefaultKeyName, DefaultKey.
	KeyName, Key string
	// Token checks the bearer token of a client that comes with an identity; an error refuses it.
	// Default: all are refused.
	Token func(jwt string) error
	// Queues are there from the start.
	Queues []QueueSpec
	// Topics are there from the start.
	Topics []TopicSpec
	// Now is the clock. Default: time.Now. After a jump of the clock, its owner calls Server.Tick.
	Now func() time.Time
	// Logger is told what goes wrong on connections. Default: nobody.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.KeyName == "" {
		o.KeyName = DefaultKeyName
	}
	if o.Key == "" {
		o.Key = DefaultKey
	}
	if o.Token == nil {
		o.Token = func(string) error { return errors.New("this stand-in takes no bearer tokens") }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// checkSpec tells what is wrong with a queue, or with what of a topic is as in a queue.
func checkSpec(what string, spec QueueSpec) error {
	address := parseAddress(spec.Name)
	switch {
	case spec.Name == "":
		return fmt.Errorf("a %s needs a name", what)
	case address.deadLetter || address.management || address.entity != spec.Name:
		return fmt.Errorf("%s name %q: give the path alone, without slashes around it and without $DeadLetterQueue or $management", what, spec.Name)
	case strings.Contains(strings.ToLower(spec.Name), strings.ToLower(subscriptionSegment)):
		return fmt.Errorf("%s name %q: %s stands between a topic and its subscription", what, spec.Name, subscriptionSegment)
	case spec.LockDuration < 0 || spec.MaxDeliveryCount < 0 || spec.DuplicateDetectionWindow < 0 || spec.DefaultTTL < 0 || spec.MaxMessageSize < 0:
		return fmt.Errorf("%s %q: durations, counts and sizes cannot be negative; 0 is the default", what, spec.Name)
	}
	return nil
}

func newToken() broker.Token {
	var token broker.Token
	// crypto/rand never fails: it ends the program where the system has no randomness.
	_, _ = rand.Read(token[:])
	return token
}
