package servicebusfake

import (
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// arguments are the body of a management request.
type arguments struct{ body amqp.Map }

// badArgument tells which argument of a request is missing or wrong.
type badArgument struct{ name string }

func (b badArgument) Error() string {
	return fmt.Sprintf("The argument %q is missing or of a wrong type.", b.name)
}

func (a arguments) text(name string) (string, error) {
	text, ok := a.body.Get(name).(string)
	if !ok {
		return "", badArgument{name}
	}
	return text, nil
}

// optionalText is nil if the argument is missing or null.
func (a arguments) optionalText(name string) *string {
	if text, ok := a.body.Get(name).(string); ok {
		return &text
	}
	return nil
}

func (a arguments) integer(name string) (int64, error) {
	number, ok := integer(a.body.Get(name))
	if !ok {
		return 0, badArgument{name}
	}
	return number, nil
}

func (a arguments) instant(name string) (time.Time, error) {
	at, ok := a.body.Get(name).(amqp.Timestamp)
	if !ok {
		return time.Time{}, badArgument{name}
	}
	return at.Time(), nil
}

// elements reads what is an array to some clients and a list to others.
func (a arguments) elements(name string) ([]any, error) {
	switch values := a.body.Get(name).(type) {
	case amqp.Array:
		return values, nil
	case amqp.List:
		return values, nil
	default:
		return nil, badArgument{name}
	}
}

func (a arguments) sequenceNumbers() ([]int64, error) {
	const name = "sequence-numbers"
	values, err := a.elements(name)
	if err != nil {
		return nil, err
	}
	numbers := make([]int64, len(values))
	for i, value := range values {
		number, ok := integer(value)
		if !ok {
			return nil, badArgument{name}
		}
		numbers[i] = number
	}
	return numbers, nil
}

func (a arguments) lockTokens() ([]broker.Token, error) {
	const name = "lock-tokens"
	values, err := a.elements(name)
	if err != nil {
		return nil, err
	}
	tokens := make([]broker.Token, len(values))
	for i, value := range values {
		token, ok := value.(amqp.UUID)
		if !ok {
			return nil, badArgument{name}
		}
		tokens[i] = broker.Token(token)
	}
	return tokens, nil
}

// integer reads a number in any of the integer types: clients choose different ones for the same
// argument.
func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case uint8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case uint32:
		return int64(n), true
	case uint64:
		return int64(n), true
	case int8:
		return int64(n), true
	case int16:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	default:
		return 0, false
	}
}
