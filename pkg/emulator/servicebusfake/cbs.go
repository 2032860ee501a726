package servicebusfake

import (
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

// tokenJWT is how clients name the type of a bearer token to $cbs.
const tokenJWT = "jwt"

// claims are the entities that the tokens of a connection open, with the instant at which each
// ends; zero = never. A claim is to send, receive and manage alike.
type claims map[string]time.Time

// cover tells whether a claim opens the entity: it does for the path it names and all below.
func (c claims) cover(path string, now time.Time) bool {
	for claimed, expiry := range c {
		if (expiry.IsZero() || expiry.After(now)) && within(claimed, path) {
			return true
		}
	}
	return false
}

func within(parent, path string) bool {
	return parent == "" || path == parent || strings.HasPrefix(path, parent+"/")
}

// nextExpiry is how long the claim that ends first still counts; ok is false if none ends.
func (c claims) nextExpiry(now time.Time) (wait time.Duration, ok bool) {
	for _, expiry := range c {
		if !expiry.IsZero() && (!ok || expiry.Sub(now) < wait) {
			wait, ok = expiry.Sub(now), true
		}
	}
	return wait, ok
}

func (c claims) dropExpired(now time.Time) (dropped bool) {
	for path, expiry := range c {
		if !expiry.IsZero() && !expiry.After(now) {
			delete(c, path)
			dropped = true
		}
	}
	return dropped
}

// cbsNode takes tokens: the claims-based security node of a connection.
type cbsNode struct{ responder }

func (n cbsNode) take(d *delivery) (amqp.State, error) {
	return n.respond(d, statusKeys{code: "status-code", description: "status-description"}, n.putToken)
}

func (n cbsNode) putToken(r *request) (response, error) {
	audience, _ := r.properties.Get("name").(string)
	v, err := n.conn.intercept(Request{Op: OpPutToken, Entity: audience})
	if err != nil {
		return response{}, err
	}
	if v.refusal != nil {
		return response{status: v.status, description: v.refusal.Description, condition: v.refusal.Condition}, nil
	}
	answer := n.verify(r, audience)
	answer.silent = v.silent
	return answer, nil
}

func (n cbsNode) verify(r *request, audience string) response {
	if operation, _ := r.properties.Get("operation").(string); operation != "put-token" {
		return response{status: 400, description: "$cbs knows the operation put-token only.", condition: conditionArgument}
	}
	token, ok := r.value.(string)
	if !ok {
		return response{status: 400, description: "The body of the message is not a token.", condition: conditionArgument}
	}
	host, path := splitAudience(audience)
	if host != n.conn.hostname {
		return unauthorized("InvalidAudience: The token is for another namespace than the connection.")
	}
	var expiry time.Time
	switch kind, _ := r.properties.Get("type").(string); {
	case isSAS(token):
		// The token's own form counts, not the type that is said: the Python client calls its
		// signatures jwt.
		o := n.conn.server.options
		sas, err := parseSAS(token)
		if err != nil {
			return unauthorized("MalformedToken: " + err.Error())
		}
		if err := sas.check(o.KeyName, o.Key, host, path, n.conn.now()); err != nil {
			return unauthorized(err.Error() + ".")
		}
		expiry = sas.expiry
	case kind == tokenJWT:
		if err := n.conn.server.options.Token(token); err != nil {
			return unauthorized("InvalidToken: " + err.Error())
		}
	default:
		return response{status: 400, description: "The token is neither a shared access signature nor of the type jwt.", condition: conditionArgument}
	}
	n.conn.claims[path] = expiry
	return response{status: 202, description: "Accepted"}
}

func unauthorized(description string) response {
	return response{status: 401, description: description, condition: conditionAuthorizationFail}
}

// splitAudience takes an audience such as amqps://host:port/queue apart: host without port, path
// without slashes around it, both in lower case.
func splitAudience(audience string) (host, path string) {
	if _, rest, isURL := strings.Cut(audience, "://"); isURL {
		audience = rest
	}
	host, path, _ = strings.Cut(strings.ToLower(audience), "/")
	return hostOf(host), strings.Trim(path, "/")
}
