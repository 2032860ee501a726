package functionshost

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// payload is the body of an invocation request.
type payload struct {
	Data     map[string]any
	Metadata map[string]any
}

// dotNetTime is how the host's JSON writer prints a time with its offset.
const dotNetTime = "2006-01-02T15:04:05.9999999-07:00"

// newPayload is the part that all payloads have.
func (f *function) newPayload(now time.Time) payload {
	return payload{Data: map[string]any{}, Metadata: map[string]any{"sys": map[string]any{
		"MethodName": f.name,
		"UtcNow":     now.UTC().Format("2006-01-02T15:04:05.9999999Z07:00"),
		"RandGuid":   newGUID(),
	}}}
}

func (f *function) timerPayload(now time.Time, tick Tick) payload {
	p := f.newPayload(now)
	p.Data[f.trigger.name] = map[string]any{
		"Schedule":       map[string]any{"AdjustForDST": f.timer.adjustDST},
		"ScheduleStatus": f.timer.statusPayload(),
		"IsPastDue":      tick.PastDue,
	}
	return p
}

// Message is what a Service Bus trigger hands to a function.
type Message struct {
	Body                  []byte
	MessageID             string
	SessionID             string
	Subject               string
	ContentType           string
	CorrelationID         string
	DeliveryCount         int // 1 for the first delivery
	SequenceNumber        int64
	LockToken             string
	EnqueuedTime          time.Time
	ApplicationProperties map[string]any
}

// messagePayload encodes a message as the host does for the parameter type it
// uses by default, string: body and metadata are JSON within JSON strings.
func (f *function) messagePayload(now time.Time, m Message) payload {
	p := f.newPayload(now)
	if f.trigger.binary {
		p.Data[f.trigger.name] = hostValue(m.Body)
	} else {
		p.Data[f.trigger.name] = hostValue(string(m.Body))
	}
	properties := m.ApplicationProperties
	if properties == nil {
		properties = map[string]any{}
	}
	metadata := map[string]any{
		"DeliveryCount":         m.DeliveryCount,
		"MessageId":             m.MessageID,
		"SequenceNumber":        m.SequenceNumber,
		"LockToken":             m.LockToken,
		"EnqueuedTimeUtc":       m.EnqueuedTime.UTC(),
		"ApplicationProperties": properties,
		"UserProperties":        properties,
	}
	for name, text := range map[string]string{
		"SessionId": m.SessionID, "Subject": m.Subject, "Label": m.Subject, "ContentType": m.ContentType, "CorrelationId": m.CorrelationID,
	} {
		if text != "" { // null is not sent
			metadata[name] = text
		}
	}
	for name, value := range topLevelProperties(m.Body) {
		metadata[name] = value
	}
	for name, value := range metadata {
		p.Metadata[name] = hostValue(value)
	}
	return p
}

// topLevelProperties are those of a JSON object that the host adds to the
// metadata: objects as they are, scalars as text, lists not at all.
func topLevelProperties(body []byte) map[string]any {
	text := strings.TrimSpace(string(body))
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if !strings.HasPrefix(text, "{") || decoder.Decode(&fields) != nil {
		return nil
	}
	for name, value := range fields {
		switch value := value.(type) {
		case nil, []any:
			delete(fields, name)
		case map[string]any:
		case bool:
			fields[name] = map[bool]string{true: "True", false: "False"}[value]
		default:
			fields[name] = fmt.Sprint(value)
		}
	}
	return fields
}

// hostValue applies the rule by which the host puts a value into a payload:
// bytes become base64, objects stay objects, and everything else becomes a
// string that holds its JSON.
func hostValue(value any) any {
	switch value := value.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(value)
	case map[string]any:
		return value
	default:
		encoded, err := json.Marshal(value)
		if err != nil { // a value that has no JSON, such as NaN, is sent as its text
			return fmt.Sprint(value)
		}
		return string(encoded)
	}
}

// newGUID makes a random (version 4) GUID.
func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
