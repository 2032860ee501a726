package cosmosfake_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func provisioned(id string, throughput, partitions int) cosmosfake.ContainerSpec {
	return cosmosfake.ContainerSpec{ID: id, PartitionKey: []string{"/id"}, Throughput: throughput, Partitions: partitions}
}

// TestTheGoSDKReadsAndReplacesThroughput has azcosmos judge what is answered.
func TestTheGoSDKReadsAndReplacesThroughput(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, provisioned("orders", 1000, 1), byID("shared"))
	client := sdk(t, s, nil)
	container, err := client.NewContainer("db", "orders")
	testworld.Must(t, err)
	read, err := container.ReadThroughput(t.Context(), nil)
	testworld.Must(t, err)
	if now, _ := read.ThroughputProperties.ManualThroughput(); now != 1000 || read.MinThroughput == nil || *read.MinThroughput != 400 || read.IsReplacePending {
		t.Errorf("read %d, at least %v, pending %t", now, read.MinThroughput, read.IsReplacePending)
	}
	stale := read.ThroughputProperties.ETag
	replaced, err := container.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(2000), &azcosmos.ThroughputOptions{IfMatchEtag: stale})
	testworld.Must(t, err)
	if now, _ := replaced.ThroughputProperties.ManualThroughput(); now != 2000 || *replaced.ThroughputProperties.ETag == *stale {
		t.Errorf("replaced by %d with the etag %s", now, *replaced.ThroughputProperties.ETag)
	}
	for rule, c := range map[string]struct {
		throughput int32
		etag       *azcore.ETag
		want       int
	}{
		"below the minimum":         {300, nil, http.StatusBadRequest},
		"beyond the maximum":        {1_000_100, nil, http.StatusBadRequest},
		"not in steps of 100":       {450, nil, http.StatusBadRequest},
		"with an etag of before":    {400, stale, http.StatusPreconditionFailed},
		"with the etag that it has": {2100, replaced.ThroughputProperties.ETag, http.StatusOK},
	} {
		answer, err := container.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(c.throughput), &azcosmos.ThroughputOptions{IfMatchEtag: c.etag})
		got := http.StatusOK
		if err != nil {
			got = status(t, err)
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d: %+v", rule, got, c.want, answer)
		}
	}
	without, err := client.NewContainer("db", "shared")
	testworld.Must(t, err)
	if _, err := without.ReadThroughput(t.Context(), nil); status(t, err) != http.StatusNotFound {
		t.Errorf("a container without throughput of its own: %v", err)
	}
}

// TestWhatIsPendingIsNotServedYet has a container throttle by what it had while a change is
// pending.
func TestWhatIsPendingIsNotServedYet(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, provisioned("orders", 400, 1))
	s.HoldOffers(time.Minute)
	client := sdk(t, s, nil)
	container, err := client.NewContainer("db", "orders")
	testworld.Must(t, err)
	replaced, err := container.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(800), nil)
	testworld.Must(t, err)
	if !replaced.IsReplacePending || replaced.RawResponse.StatusCode != http.StatusAccepted {
		t.Errorf("pending is %t, with %d", replaced.IsReplacePending, replaced.RawResponse.StatusCode)
	}
	c := newClient(t, s)
	served := func() (n int) {
		for range 1000 {
			if r, _ := c.feed("orders", "0", ""); r.status == http.StatusNotModified {
				n++
			}
		}
		return n
	}
	if n := served(); n != 400 {
		t.Errorf("while it is pending, %d RU were served in a second", n)
	}
	clock.advance(time.Minute)
	read, err := container.ReadThroughput(t.Context(), nil)
	testworld.Must(t, err)
	if read.IsReplacePending {
		t.Error("it is pending for longer than it was held")
	}
	if n := served(); n != 800 {
		t.Errorf("afterwards %d RU were served in a second", n)
	}
}

func TestTheMinimumOfADatabaseGrowsWithItsContainers(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{})
	c := newClient(t, s)
	c.expect(c.do("POST", "dbs", headers{"x-ms-offer-throughput", "1000"}, `{"id":"shared"}`), "201")
	client := sdk(t, s, nil)
	database, err := client.NewDatabase("shared")
	testworld.Must(t, err)
	// has its own, and does not count
	testworld.Must(t, s.CreateContainer("shared", provisioned("own", 400, 1)))
	for i := range 27 {
		testworld.Must(t, s.CreateContainer("shared", byID(fmt.Sprint("c", i))))
		want := int32(400 + 100*max(0, i+1-25))
		got, err := database.ReadThroughput(t.Context(), nil)
		testworld.Must(t, err)
		if *got.MinThroughput != want {
			t.Errorf("with %d containers the minimum is %d, want %d", i+1, *got.MinThroughput, want)
		}
	}
}

// TestAnHourIsBilledByItsHighest follows docs of the service: the highest of each full hour counts.
func TestAnHourIsBilledByItsHighest(t *testing.T) {
	t.Parallel()
	clock := newClock() // 05:06:07
	s := start(t, cosmosfake.Options{Now: clock.now}, provisioned("manual", 400, 1))
	c := newClient(t, s)
	c.expect(c.do("POST", "dbs/db/colls", headers{"x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":4000}`}, `{"id":"auto","partitionKey":{"paths":["/id"]}}`), "201")
	client := sdk(t, s, nil)
	manual, err := client.NewContainer("db", "manual")
	testworld.Must(t, err)
	set := func(n int32) {
		_, err := manual.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(n), nil)
		testworld.Must(t, err)
	}
	set(2000)
	set(500)
	clock.advance(time.Hour) // 06:06: 500 all the time, and 900 read in one second of the other
	for range 900 {
		r, _ := c.feed("auto", "0", "")
		c.expect(r, "304")
	}
	clock.advance(time.Hour) // 07:06
	set(600)
	clock.advance(2 * time.Hour) // 09:06
	bill := func(coll string) string {
		hours, err := s.Bill("db", coll)
		testworld.Must(t, err)
		var text []string
		for _, h := range hours {
			text = append(text, fmt.Sprintf("%s %d", h.Start.Format("15:04"), h.RUPerSecond))
		}
		return strings.Join(text, ", ")
	}
	for coll, want := range map[string]string{
		"manual": "05:00 2000, 06:00 500, 07:00 600, 08:00 600, 09:00 600",
		"auto":   "05:00 400, 06:00 900, 07:00 400, 08:00 400, 09:00 400",
	} {
		if got := bill(coll); got != want {
			t.Errorf("%s: billed %s, want %s", coll, got, want)
		}
	}
	if _, err := s.Bill("db", ""); err == nil {
		t.Error("a database without throughput has a bill")
	}
	if _, err := s.Bill("db", "nothing"); err == nil {
		t.Error("a container that does not exist has a bill")
	}
}

const accountID = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/shop/providers/Microsoft.DocumentDB/databaseAccounts/shop"

// TestResourceManagerTellsAndChangesThroughput reads and changes it as its REST API is documented.
func TestResourceManagerTellsAndChangesThroughput(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, provisioned("orders", 1000, 1), byID("shared"))
	c := newClient(t, s)
	c.expect(c.do("POST", "dbs/db/colls", headers{"x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":4000}`}, `{"id":"auto","partitionKey":{"paths":["/id"]}}`), "201")
	served := httptest.NewTLSServer(s.Manager(cosmosfake.ManagerOptions{Account: accountID, Polls: 1, Token: func(bearer string) error {
		switch bearer {
		case "good":
			return nil
		case "weak":
			return fmt.Errorf("no role: %w", cosmosfake.ErrForbidden)
		}
		return errors.New("another token")
	}}))
	t.Cleanup(served.Close)
	var bearer string
	ask := func(method, url, body string) (answer *http.Response, text string) {
		t.Helper()
		if !strings.HasPrefix(url, "https://") {
			url = served.URL + accountID + url + "?api-version=2025-10-15"
		}
		r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewBufferString(body))
		testworld.Must(t, err)
		r.Header.Set("Content-Type", "application/json")
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		answer, err = served.Client().Do(r)
		testworld.Must(t, err)
		defer answer.Body.Close()
		read, err := io.ReadAll(answer.Body)
		testworld.Must(t, err)
		return answer, string(read)
	}
	const orders = "/sqlDatabases/db/containers/orders/throughputSettings/default"
	for _, b := range []struct {
		bearer string
		status int
		code   string
	}{{"", 401, "AuthenticationFailed"}, {"weak", 403, "AuthorizationFailed"}, {"other", 401, "InvalidAuthenticationToken"}} {
		bearer = b.bearer
		if r, text := ask("GET", orders, ""); r.StatusCode != b.status || !strings.Contains(text, b.code) {
			t.Errorf("token %q: %d %s", b.bearer, r.StatusCode, text)
		}
	}
	bearer = "good"
	reads := []struct {
		rule, path string
		status     int
		want       string
	}{
		{"manual", orders, 200, `"minimumThroughput":"400","offerReplacePending":"false","softAllowedMaximumThroughput":"1000000","throughput":1000`},
		{"autoscale", strings.Replace(orders, "orders", "auto", 1), 200, `"autoscaleSettings":{"maxThroughput":4000}`},
		{"in any case, as Azure's names are", strings.ToUpper("/sqldatabases/") + "db/CONTAINERS/orders/ThroughputSettings/DEFAULT", 200, `"throughput":1000`},
		{"of none of its own", strings.Replace(orders, "orders", "shared", 1), 404, "NotFound"},
		{"of a database without any", "/sqlDatabases/db/throughputSettings/default", 404, "NotFound"},
		{"of what does not exist", strings.Replace(orders, "orders", "nothing", 1), 404, "NotFound"},
	}
	for _, c := range reads {
		if r, text := ask("GET", c.path, ""); r.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", c.rule, r.StatusCode, text)
		}
	}
	for _, c := range []struct {
		rule, body, want string
	}{
		{"as allowed", `{"properties":{"resource":{"throughput":2000}}}`, "Succeeded"},
		{"below the least", `{"properties":{"resource":{"throughput":100}}}`, "valid throughput values between 400 and 1000000"},
		{"autoscale without a migration", `{"properties":{"resource":{"autoscaleSettings":{"maxThroughput":4000}}}}`, "invoke migration API"},
	} {
		r, text := ask("PUT", orders, c.body)
		state := r.Header.Get("Azure-AsyncOperation")
		if r.StatusCode != http.StatusAccepted || state == "" || r.Header.Get("Location") == "" {
			t.Errorf("%s: %d %s with %v", c.rule, r.StatusCode, text, r.Header)
			continue
		}
		var told []string
		for len(told) == 0 || told[len(told)-1] == "InProgress" {
			_, text = ask("GET", state, "")
			var answer struct{ Status string }
			testworld.Must(t, json.Unmarshal([]byte(text), &answer))
			told = append(told, answer.Status)
		}
		if len(told) != 2 || !strings.Contains(text, c.want) {
			t.Errorf("%s: told %v and then %s, want %s", c.rule, told, text, c.want)
		}
	}
	for rule, body := range map[string]string{"neither": `{"properties":{"resource":{}}}`, "both": `{"properties":{"resource":{"throughput":400,"autoscaleSettings":{"maxThroughput":4000}}}}`, "no JSON": `{`} {
		if r, text := ask("PUT", orders, body); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", rule, r.StatusCode, text)
		}
	}
	if r, text := ask("GET", served.URL+accountID+orders, ""); r.StatusCode != http.StatusBadRequest || !strings.Contains(text, "MissingApiVersionParameter") {
		t.Errorf("without a version: %d %s", r.StatusCode, text)
	}
	if _, text := ask("GET", orders, ""); !strings.Contains(text, `"throughput":2000`) {
		t.Errorf("afterwards: %s", text)
	}
}

func TestResourceManagerRefusesServerlessAccountsInTheirWords(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{Serverless: true}, byID("orders"))
	r := httptest.NewRequest(http.MethodGet, accountID+"/sqlDatabases/db/containers/orders/throughputSettings/default?api-version=2025-10-15", nil)
	r.Header.Set("Authorization", "Bearer any")
	w := httptest.NewRecorder()
	s.Manager(cosmosfake.ManagerOptions{Account: accountID}).ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "Reading or replacing offers is not supported for serverless accounts.") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
