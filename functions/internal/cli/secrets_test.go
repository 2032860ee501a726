package cli_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// The secrets that are planted, as long as the services make them.
var (
	planted = func(name string, size int) string {
		return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%-*s", size, "PLANTED "+name))
	}
	accountSecret, busSecret, storageSecret = planted("account key", 64), planted("Service Bus key", 32), planted("storage key", 64)
	webhookSecret                           = "whsec_" + planted("webhook", 32)
)

const (
	signedSecret  = "UExBTlRFRHNpZ25hdHVyZQ" // of shared access signatures
	apiSecret     = "PLANTED-api-key-0123456789"
	urlSecret     = "PLANTED-code-0123456789"
	webPathSecret = "PLANTED-path-0123456789"
)

func secrets() []string {
	all := []string{signedSecret, apiSecret, urlSecret, webPathSecret, tokenSignature}
	for _, key := range []string{accountSecret, busSecret, storageSecret, webhookSecret} {
		all = append(all, strings.TrimRight(key, "="), strings.TrimPrefix(key, "whsec_"))
	}
	return all
}

// telltale is a service that repeats all it is told in its refusals, as a proxy on the way may.
type telltale struct {
	*httptest.Server
	mu   sync.Mutex
	told []string // what requests proved themselves with
}

var proofs = regexp.MustCompile(`(?i)(?:sig(?:nature)?=|Bearer |:)([A-Za-z0-9+/_.-]{20,}=*)`)

func startTelltale(t *testing.T, status int) *telltale {
	t.Helper()
	s := &telltale{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		plain, _ := url.QueryUnescape(r.Header.Get("Authorization"))
		s.mu.Lock()
		for _, proof := range proofs.FindAllStringSubmatch(plain, -1) {
			s.told = append(s.told, proof[1], url.QueryEscape(proof[1]))
		}
		s.mu.Unlock()
		said := fmt.Sprintf("%s to %s with %s, %v and %s", r.Header.Get("Authorization"), r.URL, plain, r.Header, body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Ms-Error-Code", "Forbidden")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"code": "Forbidden", "message": said, "detail": said, "error": map[string]string{"code": "Forbidden", "message": said}, "odata.error": map[string]any{"code": "Forbidden", "message": map[string]string{"value": said}}})
	}))
	t.Cleanup(s.Close)
	return s
}

// heard is what it was told so far.
func (s *telltale) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

// keepsSecrets holds that a text shows none of what was planted, nor what a service was told.
func keepsSecrets(t *testing.T, what, text string, told []string) {
	t.Helper()
	for _, secret := range append(secrets(), told...) {
		for _, form := range []string{secret, url.QueryEscape(secret), strings.ReplaceAll(secret, "&", `\u0026`)} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s shows %q: %s", what, secret, text[max(0, at-150):min(len(text), at+50)])
				return
			}
		}
	}
}

// TestNoSecretIsShownWhateverFails plants secrets in every setting that holds one, has everything fail in
// turn, and looks at every output of every command.
func TestNoSecretIsShownWhateverFails(t *testing.T) {
	t.Parallel()
	bus := "Endpoint=sb://%s/;SharedAccessKeyName=feedscale;SharedAccessKey=" + busSecret
	table := "AccountName=shop;AccountKey=" + storageSecret + ";TableEndpoint=%s/shop"
	signedBus, signedTable := "Endpoint=sb://%s/;SharedAccessSignature=SharedAccessSignature sr=x&sig="+signedSecret+"&se=1&skn=feedscale", "TableEndpoint=%s/shop;SharedAccessSignature=sv=1&sig="+signedSecret
	const nobody = "127.0.0.1:1"
	for _, c := range []struct {
		rule string
		set  func(settings map[string]string, telltale string)
	}{
		{"nobody answers", func(map[string]string, string) {}},
		{"services repeat what they are told", func(s map[string]string, telltale string) {
			s["COSMOS"] = "AccountEndpoint=" + telltale + ";AccountKey=" + accountSecret
			s["TABLES"] = fmt.Sprintf(table, telltale)
			s["FEEDSCALE_EVENTS"] = "stdout:"
		}},
		{"by shared access signatures", func(s map[string]string, telltale string) {
			s["SERVICEBUS"], s["TABLES"] = fmt.Sprintf(signedBus, nobody), fmt.Sprintf(signedTable, telltale)
		}},
		{"keys are cut off", func(s map[string]string, _ string) {
			for _, name := range []string{"COSMOS", "SERVICEBUS", "TABLES", "FEEDSCALE_WEBHOOK_SECRET"} {
				s[name] = strings.TrimRight(s[name], "=") + "!"
			}
		}},
		{"endpoints are wrong", func(s map[string]string, _ string) {
			s["COSMOS"] = "AccountEndpoint=nonsense://user:" + urlSecret + "@x/?code=" + urlSecret + ";AccountKey=" + accountSecret
			s["SERVICEBUS"] = fmt.Sprintf(bus, "user:"+urlSecret+"@x/?"+urlSecret)
			s["TABLES"] = fmt.Sprintf(table, "nonsense://user:"+urlSecret+"@x/?code="+urlSecret)
		}},
		{"each stands where another should", func(s map[string]string, _ string) {
			s["COSMOS"], s["SERVICEBUS"], s["TABLES"] = s["TABLES"], s["COSMOS"], s["SERVICEBUS"]
		}},
		{"connection strings stand where names should", func(s map[string]string, _ string) {
			s["FEEDSCALE_STATE"], s["FEEDSCALE_EVENTS"] = "table:"+s["TABLES"]+"/states", "servicebus:"+s["SERVICEBUS"]+"/q"
			s["FEEDSCALE_PROCESSORS"] = strings.ReplaceAll(s["FEEDSCALE_PROCESSORS"], "connection: COSMOS", `connection: "`+s["COSMOS"]+`"`)
		}},
		{"and where the settings of the program should", func(s map[string]string, _ string) {
			for _, name := range []string{"FEEDSCALE_LISTEN", "FEEDSCALE_LOG_LEVEL", "FEEDSCALE_CONCURRENCY", "FEEDSCALE_TIMER_SCHEDULE", "FEEDSCALE_REGION", "FEEDSCALE_HISTORY", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "FEEDSCALE_KEY", "COSMOS__accountKey"} {
				s[name] = s["COSMOS"]
			}
			s["FEEDSCALE_URL"] = "https://user:" + urlSecret + "@x/?code=" + urlSecret
		}},
		{"and in the processors file", func(s map[string]string, _ string) {
			s["FEEDSCALE_PROCESSORS"] = `{processors: [{name: "` + accountSecret + `", connection: COSMOS, databaseId: "` + s["COSMOS"] + `", key: "` + s["COSMOS"] + `", schedule: "` + s["COSMOS"] + `", ` + `target: {a: [` + `"` + s["COSMOS"] + `"]}}]}`
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			service := startTelltale(t, http.StatusForbidden)
			settings := map[string]string{
				"COSMOS":     "AccountEndpoint=http://" + nobody + ";AccountKey=" + accountSecret,
				"SERVICEBUS": fmt.Sprintf(bus, nobody) + ";UseDevelopmentEmulator=true", "TABLES": fmt.Sprintf(table, "http://"+nobody),
				"FEEDSCALE_STATE": "table:TABLES/states", "FEEDSCALE_EVENTS": "servicebus:SERVICEBUS/q", "FEEDSCALE_API_KEY": apiSecret, "FEEDSCALE_WEBHOOK_SECRET": webhookSecret,
				"FEEDSCALE_LISTEN": "127.0.0.1:0", "FEEDSCALE_TICK_TIMEOUT": "1s", "FEEDSCALE_TIMER_SCHEDULE": "*/1 * * * * *", "FEEDSCALE_LOG_LEVEL": "debug",
				"FEEDSCALE_PROCESSORS": `{processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders}]}`,
			}
			c.set(settings, service.URL)
			inFile := maps.Clone(settings)
			inFile["FEEDSCALE_STATE"] = stateFile(t)
			for _, run := range []struct {
				settings map[string]string
				args     []string
			}{
				{settings, []string{"poll"}}, {settings, []string{"poll", "--output", "json", "--explain"}}, {settings, []string{"check"}}, {settings, []string{"check", "--output", "json"}},
				{settings, []string{"history", "orders"}}, {settings, []string{"simulate", "--trace", "history:orders"}}, {settings, []string{"leases", "--connection", "COSMOS", "--database", "shop"}},
				{settings, []string{"leases", "--connection", settings["COSMOS"], "--database", "shop"}},
				{settings, []string{"consume"}}, {settings, []string{"consume", "--action", "webhook", "--url", "nonsense://user:" + urlSecret + "@x/" + webPathSecret + "?code=" + urlSecret}},
				{settings, []string{"run"}}, {settings, []string{"serve"}},
				{inFile, []string{"poll"}}, {inFile, []string{"poll", "--partitions", "--output", "json"}}, {inFile, []string{"check"}}, {inFile, []string{"history", "orders", "--output", "json"}}, {inFile, []string{"run"}},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				var stdout, stderr safe
				program.Main(ctx, program.Env{
					Args: run.args, Environ: testworld.Environ(run.settings), Stdout: &stdout, Stderr: &stderr, Now: time.Now, Version: version,
					Terminal: func() (width, height int, ok bool) { return 0, 0, false },
				}, commands(), "")
				cancel()
				if stdout.String()+stderr.String() == "" {
					t.Errorf("%q says nothing: the test proves nothing", run.args)
				}
				told := service.heard()
				keepsSecrets(t, fmt.Sprintf("stdout of %.40q", run.args), stdout.String(), told)
				keepsSecrets(t, fmt.Sprintf("stderr of %.40q", run.args), stderr.String(), told)
			}
			if file, err := os.ReadFile(strings.TrimPrefix(inFile["FEEDSCALE_STATE"], "bolt:")); err == nil {
				keepsSecrets(t, "the state file", string(file), service.heard())
			}
		})
	}
}

// TestNoPageShowsASecret has a program run whose account repeats what it is told and whose queue is out of
// reach, and asks it for every page: with the key, and with another one.
func TestNoPageShowsASecret(t *testing.T) {
	t.Parallel()
	service := startTelltale(t, http.StatusForbidden)
	file := stateFile(t)
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr safe
	ended := make(chan int, 1)
	go func() {
		ended <- program.Main(ctx, program.Env{
			Args: []string{"run"}, Stdout: &stdout, Stderr: &stderr, Now: time.Now, Version: version,
			Environ: testworld.Environ(map[string]string{
				"COSMOS":     "AccountEndpoint=" + service.URL + ";AccountKey=" + accountSecret,
				"SERVICEBUS": "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=feedscale;UseDevelopmentEmulator=true;SharedAccessKey=" + busSecret, "FEEDSCALE_EVENTS": "servicebus:SERVICEBUS/q",
				"FEEDSCALE_STATE": file, "FEEDSCALE_API_KEY": apiSecret, "FEEDSCALE_LISTEN": "127.0.0.1:0", "FEEDSCALE_LOG_LEVEL": "debug", "FEEDSCALE_TIMER_SCHEDULE": "*/1 * * * * *",
				"FEEDSCALE_PROCESSORS": `{processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders, minReplicaCount: 1, fallback: {failureThreshold: 0, behavior: static, replicas: 2}}]}`,
			}),
			Terminal: func() (width, height int, ok bool) { return 0, 0, false },
		}, commands(), "")
	}()
	listening := regexp.MustCompile(`"address":"([^"]+)"`)
	testworld.Eventually(t, "a tick", func() bool { return strings.Contains(stderr.String(), `"msg":"tick"`) })
	address := listening.FindStringSubmatch(stderr.String())[1]
	if len(service.heard()) == 0 {
		t.Error("the service was told nothing: the test proves nothing")
	}
	for _, path := range []string{"/", "/healthz", "/api/processors", "/api/processors/orders", "/api/processors/orders/history", "/api/metrics", "/api/dashboard", "/api/nothing", "/api/processors/nobody"} {
		for _, code := range []string{apiSecret, urlSecret} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path+"?code="+code, nil)
			testworld.Must(t, err)
			answer, err := http.DefaultClient.Do(request)
			testworld.Must(t, err)
			body, err := io.ReadAll(answer.Body)
			testworld.Must(t, err)
			answer.Body.Close()
			keepsSecrets(t, path, fmt.Sprint(answer.Header)+string(body), service.heard())
			if path == "/api/processors/orders" && code == apiSecret && !strings.Contains(string(body), "may not") && !strings.Contains(string(body), "403") {
				t.Errorf("the failure is not shown: %s", body)
			}
		}
	}
	cancel()
	<-ended
	keepsSecrets(t, "stdout", stdout.String(), service.heard())
	keepsSecrets(t, "stderr", stderr.String(), service.heard())
	text, err := os.ReadFile(strings.TrimPrefix(file, "bolt:"))
	testworld.Must(t, err)
	keepsSecrets(t, "the state file", string(text), service.heard())
}

// TestNoTokenIsShown has an identity's token refused by an account, and by a table, that repeat it.
func TestNoTokenIsShown(t *testing.T) {
	t.Parallel()
	service := startTelltale(t, http.StatusForbidden)
	p := feedscale{settings: map[string]string{
		"COSMOS__accountEndpoint": service.URL, "COSMOS__credential": "managedidentity", "FEEDSCALE_STATE": stateFile(t), "FEEDSCALE_LOG_LEVEL": "debug",
		"FEEDSCALE_PROCESSORS": `{processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders}]}`,
	}}
	startIdentity(t, http.StatusOK, `{"oid":"x"}`).proves(p.settings)
	for _, args := range [][]string{{"poll"}, {"poll", "--output", "json"}, {"check"}, {"check", "--output", "json"}, {"leases", "--connection", "COSMOS", "--database", "shop"}} {
		r := p.apart(t, args...)
		if len(service.heard()) == 0 {
			t.Errorf("the service was told nothing: the test proves nothing\n%s", r.Stderr)
		}
		keepsSecrets(t, fmt.Sprintf("%q", args), r.Stdout+r.Stderr, service.heard())
	}
}

// TestNoPartOfTheURLOfAWebhookIsShown has a receiver that refuses each event, and one that is not there.
func TestNoPartOfTheURLOfAWebhookIsShown(t *testing.T) {
	t.Parallel()
	for rule, c := range map[string]struct {
		status int // 0 = there is no receiver
		says   string
	}{
		"refused": {http.StatusForbidden, "refuses the event"}, "rejected for good": {http.StatusBadRequest, "dead-letter"}, "out of reach": {0, "cannot be reached"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			w, _, p := watching(t)
			w.Write(testworld.Orders, 5)
			p.now = time.Now // of the events, which grow old
			p.settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/" + testworld.Queue
			p.settings["FEEDSCALE_WEBHOOK_SECRET"], p.settings["FEEDSCALE_LOG_LEVEL"] = webhookSecret, "debug"
			if r := p.run(t, "poll"); r.Status != 0 {
				t.Fatal(r.Stderr)
			}
			receiver := "http://127.0.0.1:1"
			if c.status != 0 {
				receiver = startTelltale(t, c.status).URL
			}
			ctx, cancel := context.WithCancel(t.Context())
			var stdout, stderr safe
			ended := make(chan int, 1)
			go func() {
				ended <- program.Main(ctx, program.Env{
					Args:    []string{"consume", "--action", "webhook", "--url", receiver + "/" + webPathSecret + "?code=" + urlSecret},
					Environ: testworld.Environ(p.settings), Stdout: &stdout, Stderr: &stderr, Now: time.Now, Version: version,
					Terminal: func() (width, height int, ok bool) { return 0, 0, false },
				}, commands(), "")
			}()
			testworld.Eventually(t, c.says, func() bool { return strings.Contains(stderr.String(), c.says) })
			cancel()
			<-ended
			keepsSecrets(t, "what consume writes", stdout.String()+stderr.String(), nil)
		})
	}
}
