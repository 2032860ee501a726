package emulator

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// identityPath is where App Service serves tokens
// (https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference).
const identityPath = "/msi/token"

// tokenLife is how long a token says that it is good.
const tokenLife = time.Hour

// control serves faults and, with a header, tokens.
type control struct {
	listener net.Listener
	http     *http.Server
	header   string // value of IDENTITY_HEADER; "" = no tokens are served
	faults   *faults
	running  sync.WaitGroup
}

func startControl(
	address string, tokens bool, account *cosmosfake.Server, namespace *servicebusfake.Server, regions []string,
) (*control, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving the faults of the emulator: %w", err)
	}
	c := &control{listener: listener, faults: newFaults(account, namespace, regions)}
	mux := http.NewServeMux()
	c.faults.routes(mux)
	if tokens {
		c.header = rand.Text()
		mux.HandleFunc("GET "+identityPath, c.token)
	}
	c.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	c.running.Go(func() { _ = c.http.Serve(listener) })
	return c, nil
}

func (c *control) url() string {
	host, port, _ := net.SplitHostPort(c.listener.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func (c *control) close() error {
	c.faults.stop()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := c.http.Shutdown(ctx)
	if errors.Is(err, context.Canceled) { // the client cancelled the request
		err = c.http.Close()
	}
	c.running.Wait()
	return err
}

// token answers as App Service does. Its token is an unsigned JWT, for libraries that read the
// claims.
func (c *control) token(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-IDENTITY-HEADER")), []byte(c.header)) != 1 {
		refuse(w, http.StatusUnauthorized, "the header X-IDENTITY-HEADER is not what IDENTITY_HEADER is")
		return
	}
	resource := r.URL.Query().Get("resource")
	if resource == "" {
		refuse(w, http.StatusBadRequest, "resource is missing")
		return
	}
	const nobody = "00000000-0000-0000-0000-000000000000"
	now := time.Now()
	part := func(v any) string {
		text, _ := json.Marshal(v) // it always has a JSON form
		return base64.RawURLEncoding.EncodeToString(text)
	}
	claims := map[string]any{
		"aud": resource, "iss": "https://sts.windows.net/" + nobody + "/",
		"tid": nobody, "oid": nobody, "appid": nobody,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(tokenLife).Unix(),
	}
	answer(w, http.StatusOK, map[string]any{
		"access_token": part(map[string]any{"alg": "none", "typ": "JWT"}) + "." + part(claims) + ".",
		"expires_on":   fmt.Sprint(now.Add(tokenLife).Unix()), "resource": resource, "token_type": "Bearer", "client_id": nobody,
	})
}

// refuse answers in App Service's form of an error.
func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"statusCode": status, "message": message})
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that went away has no use for an error
}
