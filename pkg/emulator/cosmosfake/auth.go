package cosmosfake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxSkew is how far the date of a signed request may be from the real time. Options.Now does not
// matter here: clients sign with the clock they have.
const maxSkew = 15 * time.Minute

// authenticate checks the Authorization header: type=master with a signature by the account key, or
// type=aad with a bearer token.
func (c *call) authenticate(authorization string) error {
	if c.Header.Get("x-ms-version") == "" {
		return badRequest("The required header x-ms-version is missing.")
	}
	if authorization == "" {
		return unauthorized("Required Header authorization is missing. Ensure a valid Authorization token is passed.")
	}
	fields, err := parseAuthorization(authorization)
	if err != nil {
		return unauthorized("The authorization header is not of the form type={type}&ver={version}&sig={signature}.")
	}
	switch fields["type"] {
	case "master":
		return c.checkSignature(fields["sig"])
	case "aad":
		return c.checkToken(fields["sig"])
	}
	return unauthorized("The authorization header names a token type that the account does not accept.")
}

func unauthorized(message string) *fault {
	return &fault{status: http.StatusUnauthorized, message: message}
}

// parseAuthorization reads the header, which clients send both as it is and URL-encoded.
func parseAuthorization(header string) (map[string]string, error) {
	if !strings.HasPrefix(header, "type=") {
		decoded, err := url.QueryUnescape(header)
		if err != nil {
			return nil, err
		}
		header = decoded
	}
	fields := map[string]string{}
	for _, part := range strings.SplitN(header, "&", 3) {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, errors.New("no = in the header")
		}
		fields[name] = value
	}
	return fields, nil
}

func (c *call) checkSignature(signature string) error {
	date := c.Header.Get("x-ms-date")
	dated, plain := date, ""
	if date == "" {
		date = c.Header.Get("Date")
		dated, plain = "", date
	}
	// some clients send it in lower case, as they sign it
	at, err := http.ParseTime(strings.ToUpper(date))
	if err != nil {
		return unauthorized("The request carries no date: x-ms-date is missing or not in RFC 1123 form.")
	}
	given, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return unauthorized("The signature is not base64.")
	}
	for _, link := range c.signedLinks() {
		mac := hmac.New(sha256.New, c.server.key)
		for _, line := range [...]string{strings.ToLower(c.method), c.resource, link, strings.ToLower(dated), strings.ToLower(plain)} {
			mac.Write([]byte(line + "\n"))
		}
		if hmac.Equal(mac.Sum(nil), given) {
			if skew := time.Since(at); skew > maxSkew || skew < -maxSkew {
				return &fault{status: http.StatusForbidden, message: "The authorization token is not valid at the current time. Check the clock of the client."}
			}
			return nil
		}
	}
	return unauthorized("The input authorization token can't serve the request: a wrong key is being used, or the payload is not built as the protocol wants it.")
}

// signedLinks are the forms in which the link of a request may have been signed: by names as it is;
// by RID only the last RID in lower case. A feed is signed with the link of its owner.
func (c *call) signedLinks() []string {
	link := c.link
	if len(link)%2 == 1 {
		link = link[:len(link)-1]
	}
	if len(link) == 0 {
		return []string{""}
	}
	whole := strings.Join(link, "/")
	return []string{whole, strings.ToLower(link[len(link)-1]), link[len(link)-1], strings.ToLower(whole)}
}

func (c *call) checkToken(bearer string) error {
	if c.server.token == nil {
		return unauthorized("The account does not accept Microsoft Entra ID tokens.")
	}
	err := c.server.token(bearer)
	switch {
	case errors.Is(err, ErrForbidden):
		return c.roleForbids()
	case err != nil:
		return unauthorized("The token was refused.")
	case c.Kind.forKeysOnly():
		a := IdentityForbids(c.method, strings.Join(c.link, "/"))
		return a.fault()
	}
	return nil
}
