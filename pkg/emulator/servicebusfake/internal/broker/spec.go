package broker

import "time"

// The service's own defaults for a new queue.
const (
	DefaultLockDuration     = time.Minute
	DefaultMaxDeliveryCount = 10
	DefaultMaxMessageSize   = 256 * 1024
)

// Spec describes a queue.
type Spec struct {
	// Name is the path of the queue. Service Bus compares names without regard to case.
	Name string `yaml:"name"`
	// LockDuration is how long a peek-locked message, or a session, belongs to its receiver. 0 = 1
	// minute.
	LockDuration time.Duration `yaml:"lockDuration"`
	// MaxDeliveryCount is after how many failed deliveries a message is dead-lettered. 0 = 10.
	MaxDeliveryCount int `yaml:"maxDeliveryCount"`
	// RequiresSession makes every message belong to a session, and every receiver lock one.
	RequiresSession bool `yaml:"requiresSession"`
	// DuplicateDetectionWindow is how long a message id is remembered; a message that repeats one
	// is accepted and dropped. 0 = off.
	DuplicateDetectionWindow time.Duration `yaml:"duplicateDetection"`
	// DefaultTTL is how long a message lives that does not say so itself, and the most that one may
	// say. 0 = for ever.
	DefaultTTL time.Duration `yaml:"defaultTtl"`
	// DeadLetterOnExpiry keeps expired messages in the dead-letter queue instead of dropping them.
	DeadLetterOnExpiry bool `yaml:"deadLetterOnExpiry"`
	// MaxMessageSize is the largest message taken, in bytes. 0 = 256 KiB.
	MaxMessageSize int `yaml:"-"`
}

func (s Spec) withDefaults() Spec {
	if s.LockDuration == 0 {
		s.LockDuration = DefaultLockDuration
	}
	if s.MaxDeliveryCount == 0 {
		s.MaxDeliveryCount = DefaultMaxDeliveryCount
	}
	if s.MaxMessageSize == 0 {
		s.MaxMessageSize = DefaultMaxMessageSize
	}
	return s
}
