package servicebusfake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// sas is a shared access signature
// (https://learn.microsoft.com/rest/api/eventhub/generate-sas-token): it signs a resource and an
// expiry with a named key.
type sas struct {
	resource  string // as it is written in the token: the signature covers that spelling
	signature string
	expires   string // as it is written in the token
	keyName   string
	expiry    time.Time
}

const sasPrefix = "SharedAccessSignature "

func isSAS(token string) bool { return strings.HasPrefix(token, sasPrefix) }

func parseSAS(token string) (sas, error) {
	var s sas
	for field := range strings.SplitSeq(strings.TrimPrefix(token, sasPrefix), "&") {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "sr":
			s.resource = value
		case "sig":
			s.signature = value
		case "se":
			s.expires = value
		case "skn":
			s.keyName = value
		}
	}
	seconds, err := strconv.ParseInt(s.expires, 10, 64)
	if s.resource == "" || s.signature == "" || s.keyName == "" || err != nil {
		return sas{}, errors.New("a shared access signature needs sr, sig, se (in seconds since 1970) and skn")
	}
	s.expiry = time.Unix(seconds, 0)
	return s, nil
}

// check tells why the token does not open the path on the host, in the words of the service and
// never with a part of the token.
func (s sas) check(keyName, key, host, path string, now time.Time) error {
	resource, err := url.QueryUnescape(s.resource)
	if err != nil {
		return errors.New("MalformedToken: sr is not URL-encoded")
	}
	name, err := url.QueryUnescape(s.keyName)
	if err != nil || name != keyName {
		return errors.New("InvalidSignature: The token has an unknown key name")
	}
	encoded, err := url.QueryUnescape(s.signature)
	if err != nil {
		return errors.New("InvalidSignature: The token has an invalid signature")
	}
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return errors.New("InvalidSignature: The token has an invalid signature")
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(s.resource + "\n" + s.expires))
	if !hmac.Equal(signature, mac.Sum(nil)) {
		return errors.New("InvalidSignature: The token has an invalid signature")
	}
	if !s.expiry.After(now) {
		return errors.New("ExpiredToken: The token is expired")
	}
	signedHost, signedPath := splitAudience(withoutQuery(resource))
	if signedHost != host || !within(signedPath, path) {
		return errors.New("InvalidAudience: The token was signed for another resource")
	}
	return nil
}
