package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/crontab"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Settings are the parsed FEEDSCALE_* variables (docs/configure.md, Settings), except those that
// say where the processors are read from, which only Read uses.
type Settings struct {
	Timer crontab.Schedule // FEEDSCALE_TIMER_SCHEDULE

	State         State         // FEEDSCALE_STATE
	Events        Events        // FEEDSCALE_EVENTS
	Shards        Events        // FEEDSCALE_SHARD_QUEUE, with the connection FEEDSCALE_SHARDS: where a large tick is handed over; no Queue = nowhere
	ShardSize     int           // FEEDSCALE_SHARD_SIZE: leases that a tick polls by itself, and that a shard has at most; 0 = any number
	Heartbeat     time.Duration // FEEDSCALE_EVENT_HEARTBEAT: 0 (never), or 1 s to 168 h
	Listen        string        // FEEDSCALE_LISTEN, "host:port"; under a Functions host its port on loopback
	Health        string        // FEEDSCALE_HEALTH_LISTEN, "host:port" where probes alone are answered; "" = nowhere
	Scaler        Scaler        // FEEDSCALE_SCALER_*
	URL           string        // FEEDSCALE_URL: of the HTTP API of a feedscale that runs elsewhere; "" = none
	APIKey        Secret        // FEEDSCALE_API_KEY: asked for by `run` and `demo`, required beyond loopback, and sent to the API at URL; empty = none
	Concurrency   int           // FEEDSCALE_CONCURRENCY: 1 to 1024
	TickTimeout   time.Duration // FEEDSCALE_TICK_TIMEOUT: 1 s to 1 h
	RUBudget      float64       // FEEDSCALE_RU_BUDGET: request units per second for each account, at least 1; 0 = unlimited
	History       time.Duration // FEEDSCALE_HISTORY: 1 h to 8760 h
	Region        string        // FEEDSCALE_REGION: the Azure region feedscale runs in; "" = unknown
	Priority      string        // FEEDSCALE_PRIORITY: of reads from Cosmos DB, Low or High; "" = the account's default
	Bucket        int           // FEEDSCALE_THROUGHPUT_BUCKET: that reads from Cosmos DB count in, 1 to 5; 0 = none
	WebhookSecret Secret        // FEEDSCALE_WEBHOOK_SECRET: signs what `consume --action webhook` posts; empty = not signed
	Samples       time.Duration // FEEDSCALE_SAMPLES: a line of each processor at least this often: 0 (none), or 1 s to 168 h
	LogLevel      slog.Level    // FEEDSCALE_LOG_LEVEL

	MetricsPartitions bool // FEEDSCALE_METRICS_PARTITIONS: /api/metrics has series of each partition

	Ignored string // name of a setting that is set and no longer has a meaning; "" = none
}

// variables are the settings as text, with their defaults.
type variables struct {
	Config         string `env:"FEEDSCALE_CONFIG"`
	Processors     string `env:"FEEDSCALE_PROCESSORS"`
	TimerSchedule  string `env:"FEEDSCALE_TIMER_SCHEDULE" envDefault:"*/15 * * * * *"`
	State          string `env:"FEEDSCALE_STATE" envDefault:"bolt:./data/feedscale.db"`
	Events         string `env:"FEEDSCALE_EVENTS" envDefault:"stdout:"`
	ShardQueue     string `env:"FEEDSCALE_SHARD_QUEUE"`
	ShardSize      string `env:"FEEDSCALE_SHARD_SIZE" envDefault:"20000"`
	EventHeartbeat string `env:"FEEDSCALE_EVENT_HEARTBEAT" envDefault:"10m"`
	Listen         string `env:"FEEDSCALE_LISTEN" envDefault:"127.0.0.1:7071"`
	HealthListen   string `env:"FEEDSCALE_HEALTH_LISTEN"`
	ScalerListen   string `env:"FEEDSCALE_SCALER_LISTEN"`
	ScalerCert     string `env:"FEEDSCALE_SCALER_CERT_FILE"`
	ScalerKey      string `env:"FEEDSCALE_SCALER_KEY_FILE"`
	ScalerClientCA string `env:"FEEDSCALE_SCALER_CLIENT_CA_FILE"`
	URL            string `env:"FEEDSCALE_URL"`
	APIKey         string `env:"FEEDSCALE_API_KEY"`
	Concurrency    string `env:"FEEDSCALE_CONCURRENCY" envDefault:"64"`
	TickTimeout    string `env:"FEEDSCALE_TICK_TIMEOUT" envDefault:"60s"`
	RUBudget       string `env:"FEEDSCALE_RU_BUDGET" envDefault:"unlimited"`
	RUPrice        string `env:"FEEDSCALE_RU_PRICE"`
	History        string `env:"FEEDSCALE_HISTORY" envDefault:"168h"`
	Region         string `env:"FEEDSCALE_REGION"`
	Priority       string `env:"FEEDSCALE_PRIORITY"`
	Bucket         string `env:"FEEDSCALE_THROUGHPUT_BUCKET" envDefault:"0"`
	WebhookSecret  string `env:"FEEDSCALE_WEBHOOK_SECRET"`
	Samples        string `env:"FEEDSCALE_SAMPLES" envDefault:"5m"`
	LogLevel       string `env:"FEEDSCALE_LOG_LEVEL" envDefault:"info"`
	Partitions     string `env:"FEEDSCALE_METRICS_PARTITIONS" envDefault:"false"`
}

// processorsSetting is the setting that holds a document inline, and its name in mistakes.
const processorsSetting = "FEEDSCALE_PROCESSORS"

// handlerPort is the variable by which the Functions host tells a custom handler its port.
const handlerPort = "FUNCTIONS_CUSTOMHANDLER_PORT"

// appRoot is the variable by which the Functions host tells where the function app is staged.
const appRoot = "FUNCTIONS_APP_ROOT_PATH"

// regionName is the variable that App Service sets to the region it runs in.
const regionName = "REGION_NAME"

// settingNames lists the names of all settings.
func settingNames() []string {
	params, err := env.GetFieldParamsWithOptions(&variables{}, env.Options{Environment: map[string]string{}})
	if err != nil {
		return nil // cannot happen: the tests parse the struct above
	}
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Key
	}
	return names
}

// readSettings parses every setting. It also returns their text, of which document needs where the
// processors are.
func readSettings(e *environment, mistakes *Mistakes) (Settings, variables) {
	// Every variable is read as text, so that no error names a Go field or quotes a value that may
	// be a secret.
	raw, err := env.ParseAsWithOptions[variables](env.Options{Environment: e.values})
	if err != nil {
		mistakes.Add(Mistake{Field: "FEEDSCALE_*", Text: err.Error()})
	}
	s := Settings{
		Timer:         setting(mistakes, "FEEDSCALE_TIMER_SCHEDULE", raw.TimerSchedule, crontab.ParseNCRONTAB),
		Heartbeat:     setting(mistakes, "FEEDSCALE_EVENT_HEARTBEAT", raw.EventHeartbeat, parseInterval),
		Listen:        setting(mistakes, "FEEDSCALE_LISTEN", raw.Listen, parseListen),
		Scaler:        readScaler(raw, mistakes),
		URL:           strings.TrimSpace(raw.URL),
		APIKey:        NewSecret(strings.TrimSpace(raw.APIKey)), // a file that it was made from may end in a line break
		Concurrency:   setting(mistakes, "FEEDSCALE_CONCURRENCY", raw.Concurrency, numbers(1, 1024, "whole numbers from 1 to 1024")),
		TickTimeout:   setting(mistakes, "FEEDSCALE_TICK_TIMEOUT", raw.TickTimeout, durations(time.Second, time.Hour, "1s to 1h, well below the functionTimeout of host.json")),
		RUBudget:      setting(mistakes, "FEEDSCALE_RU_BUDGET", raw.RUBudget, parseRUBudget),
		History:       setting(mistakes, "FEEDSCALE_HISTORY", raw.History, durations(time.Hour, maxDuration, "1h to 8760h")),
		Region:        setting(mistakes, "FEEDSCALE_REGION", raw.Region, parseRegion),
		Priority:      setting(mistakes, "FEEDSCALE_PRIORITY", raw.Priority, choices(priorities, "Low and High, or leave it out")),
		Bucket:        setting(mistakes, "FEEDSCALE_THROUGHPUT_BUCKET", raw.Bucket, numbers(0, 5, "0 (none) and the throughput buckets 1 to 5")),
		WebhookSecret: NewSecret(raw.WebhookSecret),
		Samples:       setting(mistakes, "FEEDSCALE_SAMPLES", raw.Samples, parseInterval),
		LogLevel:      setting(mistakes, "FEEDSCALE_LOG_LEVEL", raw.LogLevel, choices(logLevels, "debug, info, warn or error")),

		MetricsPartitions: setting(mistakes, "FEEDSCALE_METRICS_PARTITIONS", raw.Partitions, choices(switches, "true and false")),
		State:             setting(mistakes, "FEEDSCALE_STATE", raw.State, parseState(e.lookup)),
		Events:            setting(mistakes, "FEEDSCALE_EVENTS", raw.Events, func(text string) (Events, error) { return ParseEvents(e.lookup, text) }),
		Shards:            setting(mistakes, "FEEDSCALE_SHARD_QUEUE", raw.ShardQueue, parseShardQueue(e.lookup)),

		ShardSize: setting(mistakes, "FEEDSCALE_SHARD_SIZE", raw.ShardSize, numbers(0, math.MaxInt, "whole numbers of leases, 0 = never hand over")),
	}
	if raw.RUPrice != "" {
		s.Ignored = "FEEDSCALE_RU_PRICE"
	}
	if region, ok := e.lookup(regionName); ok && s.Region == "" {
		s.Region = region
	}
	if raw.HealthListen != "" {
		s.Health = setting(mistakes, "FEEDSCALE_HEALTH_LISTEN", raw.HealthListen, parseListen)
	}
	if port, ok := e.lookup(handlerPort); ok {
		s.Listen = setting(mistakes, handlerPort, net.JoinHostPort("127.0.0.1", port), parseListen)
	}
	if err := checkAPIKey(s.APIKey, s.Listen); err != nil {
		mistakes.Add(Mistake{Field: "FEEDSCALE_API_KEY", Text: err.Error()})
	}
	return s, raw
}

// setting parses one setting, and adds a mistake with its name where it is wrong.
func setting[T any](mistakes *Mistakes, name, text string, parse func(string) (T, error)) T {
	value, err := parse(strings.TrimSpace(text))
	if err != nil {
		mistakes.Add(Mistake{Field: name, Text: err.Error()})
	}
	return value
}

// parseInterval accepts 0 for never.
func parseInterval(text string) (time.Duration, error) {
	if d, err := parseDuration(text); err == nil && d == 0 {
		return 0, nil
	}
	return durations(time.Second, 168*time.Hour, "0 (never) or 1s to 168h")(text)
}

// durations returns a parser of those from low to high.
func durations(low, high time.Duration, allowed string) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := parseDuration(text)
		if err == nil && (d < low || d > high) {
			err = fmt.Errorf("%s is out of range; allowed are %s", text, allowed)
		}
		return d, err
	}
}

// numbers returns a parser of whole numbers from low to high.
func numbers(low, high int, allowed string) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("%s is not allowed; allowed are %s", yamltree.Quote(text), allowed)
		}
		return n, nil
	}
}

// choices returns a parser of words, in any case.
func choices[T any](values map[string]T, allowed string) func(string) (T, error) {
	return func(text string) (T, error) {
		value, ok := values[strings.ToLower(text)]
		if !ok {
			return value, fmt.Errorf("%s is not allowed; allowed are %s", yamltree.Quote(text), allowed)
		}
		return value, nil
	}
}

var (
	switches  = map[string]bool{"true": true, "false": false}
	logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	// priorities are the levels of https://learn.microsoft.com/azure/cosmos-db/priority-based-execution.
	priorities = map[string]string{"": "", "low": "Low", "high": "High"}
)

func parseListen(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%s is not host:port; allowed is, for example, 127.0.0.1:7071, or :7071 for every interface", yamltree.Quote(text))
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("the port %s is not a number from 0 to 65535; allowed is, for example, 127.0.0.1:7071 (0 = any free port)", yamltree.Quote(port))
	}
	return net.JoinHostPort(host, port), nil
}

// IsLoopback reports whether host or host:port can mean this machine alone. A name other than
// localhost may resolve to anything.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// minKey is the fewest characters of a key that others can try to guess.
const minKey = 16

// checkAPIKey refuses a key that is too short for an address that others reach.
func checkAPIKey(key Secret, listen string) error {
	reachable := listen != "" && !IsLoopback(listen) // "" is a mistake already
	if !key.IsZero() && len(key.Reveal()) < minKey && reachable {
		return fmt.Errorf("is too short for FEEDSCALE_LISTEN=%s, which others can reach; "+
			"allowed are %d characters or more, such as openssl rand -base64 32 makes", listen, minKey)
	}
	return nil
}

func parseRUBudget(text string) (float64, error) {
	if strings.EqualFold(text, "unlimited") {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 1 && n <= 1e9) {
		return 0, fmt.Errorf("%s is not allowed; allowed are unlimited or request units a second, 1 or more", yamltree.Quote(text))
	}
	return n, nil
}

// azureRegions are the names of Azure's regions without their numbers
// (https://learn.microsoft.com/azure/reliability/regions-list).
const azureRegions = "australiacentral australiaeast australiasoutheast austriaeast belgiumcentral brazilsouth " +
	"brazilsoutheast canadacentral canadaeast centralindia centralus chilecentral chinaeast chinanorth denmarkeast " +
	"eastasia eastus francecentral francesouth germanynorth germanywestcentral indonesiacentral israelcentral " +
	"italynorth japaneast japanwest jioindiacentral jioindiawest koreacentral koreasouth malaysiawest mexicocentral " +
	"newzealandnorth northcentralus northeurope norwayeast norwaywest polandcentral qatarcentral southafricanorth " +
	"southafricawest southcentralus southeastasia southindia spaincentral swedencentral swedensouth " +
	"switzerlandnorth switzerlandwest uaecentral uaenorth uksouth ukwest usdodcentral usdodeast usgovarizona " +
	"usgovtexas usgovvirginia westcentralus westeurope westindia westus"

// parseRegion refuses a name that is one letter away from a region of Azure. It accepts any other name,
// since Azure opens regions: the letters of a new one differ in more than one place, or not at all.
func parseRegion(text string) (string, error) {
	if wrong := wrongValue(text); wrong != "" {
		return "", fmt.Errorf("%s", wrong)
	}
	name := strings.ToLower(strings.ReplaceAll(text, " ", ""))
	letters := strings.TrimRight(name, "0123456789")
	near := ""
	for _, region := range strings.Fields(azureRegions) {
		switch changefeed.NameDistance(letters, region) {
		case 0:
			return text, nil
		case 1:
			near = region
		}
	}
	if near != "" {
		return "", fmt.Errorf("%s is no Azure region; did you mean %s?", yamltree.Quote(text), near+name[len(letters):])
	}
	return text, nil
}

// Scaler says how KEDA's external scaler is served (docs/keda-external-scaler.md).
type Scaler struct {
	Listen       string // FEEDSCALE_SCALER_LISTEN, "host:port"; "" = not at all
	CertFile     string // FEEDSCALE_SCALER_CERT_FILE, in PEM; "" = without TLS
	KeyFile      string // FEEDSCALE_SCALER_KEY_FILE, in PEM, of that certificate
	ClientCAFile string // FEEDSCALE_SCALER_CLIENT_CA_FILE, in PEM: the CA of the certificates that clients must show; "" = none
}

func readScaler(raw variables, mistakes *Mistakes) Scaler {
	s := Scaler{CertFile: strings.TrimSpace(raw.ScalerCert), KeyFile: strings.TrimSpace(raw.ScalerKey), ClientCAFile: strings.TrimSpace(raw.ScalerClientCA)}
	if raw.ScalerListen != "" {
		s.Listen = setting(mistakes, "FEEDSCALE_SCALER_LISTEN", raw.ScalerListen, parseListen)
	}
	needs := func(name, value, other, otherValue string) {
		if value != "" && otherValue == "" {
			mistakes.Add(Mistake{Field: name, Text: "is of no use alone; set " + other + " beside it"})
		}
	}
	needs("FEEDSCALE_SCALER_CERT_FILE", s.CertFile, "FEEDSCALE_SCALER_KEY_FILE", s.KeyFile)
	needs("FEEDSCALE_SCALER_KEY_FILE", s.KeyFile, "FEEDSCALE_SCALER_CERT_FILE", s.CertFile)
	needs("FEEDSCALE_SCALER_CLIENT_CA_FILE", s.ClientCAFile, "FEEDSCALE_SCALER_CERT_FILE", s.CertFile)
	return s
}

// shardConnection is the connection of the shard queue, which function.json of the function shard names, too.
const shardConnection = "FEEDSCALE_SHARDS"

func parseShardQueue(lookup func(string) (string, bool)) func(string) (Events, error) {
	return func(text string) (Events, error) {
		connection, err := ParseServiceBusConnection(lookup, shardConnection, text) // also without a queue: then its settings are not unknown
		if text == "" {
			return Events{}, nil
		}
		if !queueName.MatchString(text) {
			return Events{}, fmt.Errorf("%s is not the name of a queue; %s", yamltree.Quote(text), queueForm)
		}
		return Events{Queue: text, ServiceBus: connection}, err
	}
}

// checkShards reports a shard queue from which nothing takes, since the function shard is not staged.
func (in Input) checkShards(e *environment, s Settings, mistakes *Mistakes) {
	root, _ := e.lookup(appRoot)
	staged := func(function string) error {
		_, err := in.ReadFile(filepath.Join(root, function, "function.json"))
		return err
	}
	if s.Shards.Queue != "" && staged("poll") == nil && errors.Is(staged("shard"), fs.ErrNotExist) {
		mistakes.Add(Mistake{Field: "FEEDSCALE_SHARD_QUEUE", Text: "is set, and the function shard, which takes from that queue, is not staged; allowed are an app staged by make dist FANOUT=1, or no queue"})
	}
}
