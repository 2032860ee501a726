package servicebusfake_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// signature is a shared access signature as clients make it.
func signature(resource, key string, expiry time.Time) string {
	escaped := url.QueryEscape(resource)
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = fmt.Fprintf(mac, "%s\n%d", escaped, expiry.Unix())
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%d&skn=%s", escaped,
		url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))), expiry.Unix(), servicebusfake.DefaultKeyName)
}

func TestATokenMustFitWhatItIsFor(t *testing.T) {
	t.Parallel()
	later, key := time.Now().Add(time.Hour), servicebusfake.DefaultKey
	good := signature("sb://127.0.0.1/orders", key, later)
	tests := map[string]struct {
		audience, token string
		want            int32
		why             string
	}{
		"a good one":                  {"sb://127.0.0.1/orders", good, 202, ""},
		"one for the whole namespace": {"sb://127.0.0.1/orders", signature("sb://127.0.0.1/", key, later), 202, ""},
		"one for what is below":       {"sb://127.0.0.1/orders/$management", good, 202, ""},
		"another spelling":            {"amqps://127.0.0.1:5671/Orders/", good, 202, ""},
		"one for another queue":       {"sb://127.0.0.1/other", good, 401, "InvalidAudience"},
		"one for a longer name":       {"sb://127.0.0.1/orders2", good, 401, "InvalidAudience"},
		"one signed for another host": {"sb://127.0.0.1/orders", signature("sb://elsewhere/orders", key, later), 401, "InvalidAudience"},
		"one for another namespace":   {"sb://elsewhere/orders", signature("sb://elsewhere/orders", key, later), 401, "InvalidAudience"},
		"one of another key":          {"sb://127.0.0.1/orders", signature("sb://127.0.0.1/orders", "wrong", later), 401, "InvalidSignature"},
		"one that was changed":        {"sb://127.0.0.1/orders", strings.Replace(good, "orders", "order%73", 1), 401, "InvalidSignature"},
		"one of an unknown key name":  {"sb://127.0.0.1/orders", good + "2", 401, "InvalidSignature"},
		"one that has expired":        {"sb://127.0.0.1/orders", signature("sb://127.0.0.1/orders", key, time.Now().Add(-time.Minute)), 401, "ExpiredToken"},
		"one without a part":          {"sb://127.0.0.1/orders", "SharedAccessSignature sr=a", 401, "MalformedToken"},
		"one of an unknown kind":      {"sb://127.0.0.1/orders", "x", 400, "neither"},
	}
	s := start(t, orders(servicebusfake.QueueSpec{}))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, description := putToken(t, s, test.audience, test.token)
			if status != test.want || !strings.Contains(description, test.why) {
				t.Errorf("got %d %q, want %d %q", status, description, test.want, test.why)
			}
		})
	}
}

func putToken(t *testing.T, s *servicebusfake.Server, audience, token string) (status int32, description string) {
	t.Helper()
	conn, err := plainly(t, s, goamqp.SASLTypeAnonymous())
	testworld.Must(t, err)
	session, err := conn.NewSession(deadline(t), nil)
	testworld.Must(t, err)
	sender, err := session.NewSender(deadline(t), "$cbs", nil)
	testworld.Must(t, err)
	receiver, err := session.NewReceiver(deadline(t), "$cbs", &goamqp.ReceiverOptions{TargetAddress: "here"})
	testworld.Must(t, err)
	testworld.Must(t, sender.Send(deadline(t), &goamqp.Message{
		Properties:            &goamqp.MessageProperties{MessageID: uint64(7), ReplyTo: ptr("here")},
		ApplicationProperties: map[string]any{"operation": "put-token", "name": audience, "type": "unknown"},
		Value:                 token,
	}, nil))
	answer, err := receiver.Receive(deadline(t), nil)
	testworld.Must(t, err)
	if answer.Properties.CorrelationID != uint64(7) {
		t.Errorf("the answer is to %v", answer.Properties.CorrelationID)
	}
	status, _ = answer.ApplicationProperties["status-code"].(int32)
	description, _ = answer.ApplicationProperties["status-description"].(string)
	return status, description
}
