package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/feedscale/feedscale/pkg/crontab"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Settings are the values of FEEDSCALE_* variables (docs/configure.md, Settings).
type Settings struct {
	Timer       crontab.Schedule `env:"FEEDSCALE_TIMER_SCHEDULE" envDefault:"*/15 * * * * *"`
	State       State            `env:"FEEDSCALE_STATE" envDefault:"bolt:./data/feedscale.db"`
	Events      Events           `env:"FEEDSCALE_EVENTS" envDefault:"stdout:"`
	Shards      Events           // FEEDSCALE_SHARD_QUEUE, where a large tick is handed over; no Queue = nowhere
	ShardSize   int              `env:"FEEDSCALE_SHARD_SIZE" envDefault:"20000"`    // leases; 0 = any number
	Heartbeat   time.Duration    `env:"FEEDSCALE_EVENT_HEARTBEAT" envDefault:"10m"` // 0 (never), or 1 s to 168 h
	Concurrency int              `env:"FEEDSCALE_CONCURRENCY" envDefault:"64"`      // 1 to 1024
	TickTimeout time.Duration    `env:"FEEDSCALE_TICK_TIMEOUT" envDefault:"60s"`    // 1 s to 1 h
	RUBudget    float64          `env:"FEEDSCALE_RU_BUDGET" envDefault:"unlimited"` // 1 or more a second; 0 = unlimited
	History     time.Duration    `env:"FEEDSCALE_HISTORY" envDefault:"168h"`        // 1 h to 8760 h
	Samples     time.Duration    `env:"FEEDSCALE_SAMPLES" envDefault:"5m"`          // 0 (none), or 1 s to 168 h
	LogLevel    slog.Level       `env:"FEEDSCALE_LOG_LEVEL" envDefault:"info"`
	Listen      string           `env:"FEEDSCALE_LISTEN" envDefault:"127.0.0.1:7071"` // a Functions host has its own
	Health      string           `env:"FEEDSCALE_HEALTH_LISTEN"`                      // "" = nowhere

	Scaler            Scaler // FEEDSCALE_SCALER_*
	URL               string `env:"FEEDSCALE_URL"`                // of the HTTP API of another feedscale; "" = none
	APIKey            Secret `env:"FEEDSCALE_API_KEY"`            // of this HTTP API, or of that at URL; empty = none
	Region            string `env:"FEEDSCALE_REGION"`             // of Azure; "" = unknown
	Priority          string `env:"FEEDSCALE_PRIORITY"`           // Low or High; "" = the account's default
	Bucket            int    `env:"FEEDSCALE_THROUGHPUT_BUCKET"`  // 1 to 5; 0 = none
	WebhookSecret     Secret `env:"FEEDSCALE_WEBHOOK_SECRET"`     // empty = not signed
	MetricsPartitions bool   `env:"FEEDSCALE_METRICS_PARTITIONS"` // /api/metrics has series of each partition
	Ignored           string // name of a setting that is set and no longer has a meaning; "" = none
}

// Scaler says how KEDA's external scaler is served (docs/keda-external-scaler.md), with PEM files.
type Scaler struct {
	Listen       string `env:"FEEDSCALE_SCALER_LISTEN"`         // "host:port"; "" = not at all
	CertFile     string `env:"FEEDSCALE_SCALER_CERT_FILE"`      // "" = without TLS
	KeyFile      string `env:"FEEDSCALE_SCALER_KEY_FILE"`       // of that certificate
	ClientCAFile string `env:"FEEDSCALE_SCALER_CLIENT_CA_FILE"` // of the certificates of clients; "" = none
}

// variables are all settings: also those that only this package needs.
type variables struct {
	Config     string `env:"FEEDSCALE_CONFIG"`
	Processors string `env:"FEEDSCALE_PROCESSORS"`
	ShardQueue string `env:"FEEDSCALE_SHARD_QUEUE"`
	RUPrice    string `env:"FEEDSCALE_RU_PRICE"` // of an earlier release
	Settings
}

const (
	// processorsSetting holds a document inline, and is its name in mistakes.
	processorsSetting = "FEEDSCALE_PROCESSORS"
	// handlerPort and appRoot are set by the Functions host: the port of a custom handler, and the
	// folder in which the function app is staged.
	handlerPort = "FUNCTIONS_CUSTOMHANDLER_PORT"
	appRoot     = "FUNCTIONS_APP_ROOT_PATH"
	// shardConnection is the connection of the shard queue, as in shard/function.json.
	shardConnection = "FEEDSCALE_SHARDS"
	// minKey is the fewest characters of a key that others can try to guess.
	minKey = 16
)

// settingNames lists the names of all settings.
func settingNames() (names []string) {
	params, _ := env.GetFieldParamsWithOptions(&variables{}, env.Options{Environment: map[string]string{}})
	for _, p := range params {
		if p.Key != "" {
			names = append(names, p.Key)
		}
	}
	return names
}

// readSettings reads every setting. A mistake has its name; an error of package env has not.
func readSettings(e *environment, mistakes *Mistakes) variables {
	v, err := env.ParseAsWithOptions[variables](env.Options{Environment: e.values, FuncMap: map[reflect.Type]env.ParserFunc{
		reflect.TypeFor[crontab.Schedule](): parser(crontab.ParseNCRONTAB),
		reflect.TypeFor[time.Duration]():    parser(parseDuration),
		reflect.TypeFor[float64]():          parser(parseRUBudget),
		reflect.TypeFor[Secret]():           func(text string) (any, error) { return NewSecret(text), nil },
		reflect.TypeFor[State]():            func(text string) (any, error) { return parseState(e.lookup, text) },
		reflect.TypeFor[Events]():           func(text string) (any, error) { return ParseEvents(e.lookup, text) },
	}})
	wrong := map[string]string{} // by the name of the setting
	if all, ok := errors.AsType[env.AggregateError](err); ok {
		for _, err := range all.Errors {
			if parse, ok := errors.AsType[env.ParseError](err); ok {
				field, _ := reflect.TypeFor[variables]().FieldByName(parse.Name)
				wrong[field.Tag.Get("env")] = parse.Err.Error()
			}
		}
	}
	// The levels of https://learn.microsoft.com/azure/cosmos-db/priority-based-execution.
	priority, isPriority := map[string]string{"": "", "low": "Low", "high": "High"}[strings.ToLower(v.Priority)]
	v.Priority = priority
	for _, rule := range []struct {
		name  string
		holds bool
		text  string // what is allowed
	}{
		{"FEEDSCALE_SHARD_SIZE", v.ShardSize >= 0, "whole numbers of leases, 0 = never hand over"},
		{"FEEDSCALE_EVENT_HEARTBEAT", v.Heartbeat == 0 || within(v.Heartbeat, time.Second, 168*time.Hour), "0 (never) or 1s to 168h"},
		{"FEEDSCALE_SAMPLES", v.Samples == 0 || within(v.Samples, time.Second, 168*time.Hour), "0 (never) or 1s to 168h"},
		{"FEEDSCALE_CONCURRENCY", within(v.Concurrency, 1, 1024), "whole numbers from 1 to 1024"},
		{"FEEDSCALE_TICK_TIMEOUT", within(v.TickTimeout, time.Second, time.Hour), "1s to 1h, well below the functionTimeout of host.json"},
		{"FEEDSCALE_HISTORY", within(v.History, time.Hour, maxDuration), "1h to 8760h"},
		{"FEEDSCALE_PRIORITY", isPriority, "Low and High, or leave it out"},
		{"FEEDSCALE_THROUGHPUT_BUCKET", within(v.Bucket, 0, 5), "0 (none) and the throughput buckets 1 to 5"},
		{"FEEDSCALE_LOG_LEVEL", true, "debug, info, warn or error"},
		{"FEEDSCALE_METRICS_PARTITIONS", true, "true and false"},
		{"FEEDSCALE_SCALER_CERT_FILE", v.Scaler.CertFile == "" || v.Scaler.KeyFile != "", "certificates with FEEDSCALE_SCALER_KEY_FILE beside them"},
		{"FEEDSCALE_SCALER_KEY_FILE", v.Scaler.KeyFile == "" || v.Scaler.CertFile != "", "keys with FEEDSCALE_SCALER_CERT_FILE beside them"},
		{"FEEDSCALE_SCALER_CLIENT_CA_FILE", v.Scaler.ClientCAFile == "" || v.Scaler.CertFile != "", "CAs with FEEDSCALE_SCALER_CERT_FILE beside them"},
	} {
		if wrong[rule.name] != "" || !rule.holds {
			wrong[rule.name] = yamltree.Quote(e.values[rule.name]) + " is not allowed; allowed are " + rule.text
		}
	}
	addresses := map[string]string{
		"FEEDSCALE_LISTEN": v.Listen, "FEEDSCALE_HEALTH_LISTEN": v.Health, "FEEDSCALE_SCALER_LISTEN": v.Scaler.Listen,
	}
	if port, ok := e.lookup(handlerPort); ok {
		v.Listen = net.JoinHostPort("127.0.0.1", port)
		addresses[handlerPort] = v.Listen
	}
	for name, address := range addresses {
		_, port, err := net.SplitHostPort(address)
		if _, notPort := strconv.ParseUint(port, 10, 16); address != "" && (err != nil || notPort != nil) {
			wrong[name] = yamltree.Quote(address) + " is not host:port; allowed is, for example, 127.0.0.1:7071, or :7071 for every interface, with a port from 0 (any free one) to 65535"
		}
	}
	if key := v.APIKey.Reveal(); key != "" && len(key) < minKey && wrong["FEEDSCALE_LISTEN"] == "" && !IsLoopback(v.Listen) {
		wrong["FEEDSCALE_API_KEY"] = fmt.Sprintf("is too short for FEEDSCALE_LISTEN=%s, which others can reach; "+
			"allowed are %d characters or more, such as openssl rand -base64 32 makes", v.Listen, minKey)
	}
	// Also without a queue, so that the settings of the connection are not unknown.
	v.Shards, err = ParseEvents(e.lookup, "servicebus:"+shardConnection+"/"+cmp.Or(v.ShardQueue, "none"))
	if v.ShardQueue == "" {
		v.Shards = Events{}
	} else if err != nil {
		wrong["FEEDSCALE_SHARD_QUEUE"] = err.Error()
	}
	if text := wrongValue(v.Region); text != "" {
		wrong["FEEDSCALE_REGION"] = text
	}
	if v.Region == "" {
		v.Region, _ = e.lookup("REGION_NAME") // set by App Service
	}
	if v.RUPrice != "" {
		v.Ignored = "FEEDSCALE_RU_PRICE"
	}
	for name, text := range wrong {
		mistakes.Add(Mistake{Field: name, Text: text})
	}
	return v
}

func parser[T any](parse func(string) (T, error)) env.ParserFunc {
	return func(text string) (any, error) { return parse(text) }
}

func within[T cmp.Ordered](value, low, high T) bool { return low <= value && value <= high }

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

func parseRUBudget(text string) (float64, error) {
	if strings.EqualFold(text, "unlimited") {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !within(n, 1, 1e9) {
		return 0, fmt.Errorf("%s is not allowed; allowed are unlimited or request units a second, 1 or more", yamltree.Quote(text))
	}
	return n, nil
}

// checkShards reports a shard queue whose function, shard, is not staged.
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
