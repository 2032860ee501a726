package worker

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Account is a connection to a Cosmos DB account, which any number of hosts share.
//
// Leases are kept through azcosmos. The change feed and the partition key ranges are read by plain
// requests, since azcosmos shows neither the id of a range, of which the SDK makes the lease, nor
// the 410 by which it learns of a split.
type Account struct {
	endpoint string // without a slash at the end
	key      []byte
	http     *http.Client
	cosmos   *azcosmos.Client
}

// connectionsPerHost is how many connections are kept open: one for each partition of the hosts
// that share the account, more or less.
const connectionsPerHost = 64

// NewAccount connects to an account by its key, in base64; a nil transport stands for one of its
// own. No request is made yet.
func NewAccount(endpoint, key string, transport *http.Transport) (*Account, error) {
	if transport == nil {
		transport = &http.Transport{MaxIdleConnsPerHost: connectionsPerHost}
	}
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return nil, errors.New("the account key is not base64")
	}
	credential, err := azcosmos.NewKeyCredential(key)
	if err != nil {
		return nil, errors.New("the account key cannot be used")
	}
	a := &Account{
		endpoint: strings.TrimSuffix(endpoint, "/"),
		key:      secret,
		http:     &http.Client{Transport: transport, Timeout: requestTimeout},
	}
	a.cosmos, err = azcosmos.NewClientWithKey(endpoint, credential, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: a.http}})
	if err != nil {
		return nil, fmt.Errorf("connecting to account %s: %w", endpoint, err)
	}
	return a, nil
}

// requestTimeout bounds one request, so that a host that is stuck behind one is known to be.
const requestTimeout = 10 * time.Second

// Close closes the connections, once the hosts that use them have ended.
func (a *Account) Close() { a.http.CloseIdleConnections() }

// answer is a response whose body was read.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) decode(into any) error {
	if a.status != http.StatusOK {
		return fmt.Errorf("status %d", a.status)
	}
	return json.NewDecoder(bytes.NewReader(a.body)).Decode(into)
}

// get reads a feed of a container, signed with the account key.
func (a *Account) get(ctx context.Context, c Container, feed string, header map[string]string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.endpoint+"/"+c.link()+"/"+feed, nil)
	if err != nil {
		return answer{}, fmt.Errorf("reading %s of %s: %w", feed, c, err)
	}
	date := time.Now().UTC().Format(http.TimeFormat) // the account compares it with its own clock
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte("get\n" + feed + "\n" + c.link() + "\n" + strings.ToLower(date) + "\n\n"))
	request.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	request.Header.Set("x-ms-date", date)
	request.Header.Set("x-ms-version", "2018-12-31")
	request.Header.Set("x-ms-cosmos-sdk-supportedcapabilities", "1") // understands merged ranges
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := a.http.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("reading %s of %s: %w", feed, c, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("reading %s of %s: %w", feed, c, err)
	}
	return answer{response.StatusCode, response.Header, body}, nil
}
