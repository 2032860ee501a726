package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// The lengths, in bytes, of a symmetric key (Standard Webhooks 1.0,
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
const minKeyBytes, maxKeyBytes = 24, 64

// ParseSecret returns the key in a secret in the form of the specification: base64 of 24 to 64
// bytes. The prefix whsec_ may be left out, as the specification's libraries allow. The error never
// contains the secret.
func ParseSecret(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), "whsec_"))
	if err != nil || len(key) < minKeyBytes || len(key) > maxKeyBytes {
		return nil, errors.New("the secret of the webhook is not one; allowed is base64 of 24 to 64 bytes, as 'openssl rand -base64 32' makes it, with or without whsec_ before it")
	}
	return key, nil
}

// content is what is sent, and signed together with the time.
type content struct {
	id   string
	body []byte
}

// signature sets the body and the headers of the Standard Webhooks specification at every try. The
// timestamp is that of the try, since receivers refuse an old one.
type signature struct{ key []byte } // nil: without the header webhook-signature

// Do implements policy.Policy.
func (s signature) Do(r *policy.Request) (*http.Response, error) {
	var c content
	r.OperationValue(&c)
	// A new body for each try: if a receiver answers early, net/http may still be reading the last one.
	r.Raw().ContentLength = int64(len(c.body))
	r.Raw().GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	r.Raw().Body, _ = r.Raw().GetBody()
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Raw().Header.Set("webhook-id", c.id)
	r.Raw().Header.Set("webhook-timestamp", timestamp)
	if s.key != nil {
		mac := hmac.New(sha256.New, s.key)
		fmt.Fprintf(mac, "%s.%s.%s", c.id, timestamp, c.body)
		r.Raw().Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return r.Next()
}
