package config

import (
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

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

const (
	processorsSetting = "FEEDSCALE_PROCESSORS" // that holds a document inline, and its name in mistakes

	handlerPort = "FUNCTIONS_CUSTOMHANDLER_PORT" // by which the Functions host tells a custom handler its port
	appRoot     = "FUNCTIONS_APP_ROOT_PATH"      // by which it tells where the function app is staged
	regionName  = "REGION_NAME"                  // that App Service sets to the region it runs in
)

// readSettings parses every setting.
func readSettings(e *environment, mistakes *Mistakes) Settings {
	s := Settings{
		Timer:         setting(e, mistakes, "FEEDSCALE_TIMER_SCHEDULE", "*/15 * * * * *", crontab.ParseNCRONTAB),
		Heartbeat:     setting(e, mistakes, "FEEDSCALE_EVENT_HEARTBEAT", "10m", parseInterval),
		Listen:        setting(e, mistakes, "FEEDSCALE_LISTEN", "127.0.0.1:7071", parseListen),
		Health:        setting(e, mistakes, "FEEDSCALE_HEALTH_LISTEN", "", optional(parseListen)),
		Scaler:        readScaler(e, mistakes),
		URL:           strings.TrimSpace(e.setting("FEEDSCALE_URL", "")),
		APIKey:        NewSecret(strings.TrimSpace(e.setting("FEEDSCALE_API_KEY", ""))), // a file that it was made from may end in a line break
		Concurrency:   setting(e, mistakes, "FEEDSCALE_CONCURRENCY", "64", numbers(1, 1024, "whole numbers from 1 to 1024")),
		TickTimeout:   setting(e, mistakes, "FEEDSCALE_TICK_TIMEOUT", "60s", durations(time.Second, time.Hour, "1s to 1h, well below the functionTimeout of host.json")),
		RUBudget:      setting(e, mistakes, "FEEDSCALE_RU_BUDGET", "unlimited", parseRUBudget),
		History:       setting(e, mistakes, "FEEDSCALE_HISTORY", "168h", durations(time.Hour, maxDuration, "1h to 8760h")),
		Region:        setting(e, mistakes, "FEEDSCALE_REGION", "", parseRegion),
		Priority:      setting(e, mistakes, "FEEDSCALE_PRIORITY", "", choices(priorities, "Low and High, or leave it out")),
		Bucket:        setting(e, mistakes, "FEEDSCALE_THROUGHPUT_BUCKET", "0", numbers(0, 5, "0 (none) and the throughput buckets 1 to 5")),
		WebhookSecret: NewSecret(e.setting("FEEDSCALE_WEBHOOK_SECRET", "")),
		Samples:       setting(e, mistakes, "FEEDSCALE_SAMPLES", "5m", parseInterval),
		LogLevel:      setting(e, mistakes, "FEEDSCALE_LOG_LEVEL", "info", choices(logLevels, "debug, info, warn or error")),

		MetricsPartitions: setting(e, mistakes, "FEEDSCALE_METRICS_PARTITIONS", "false", choices(switches, "true and false")),
		State:             setting(e, mistakes, "FEEDSCALE_STATE", "bolt:./data/feedscale.db", parseState(e.lookup)),
		Events:            setting(e, mistakes, "FEEDSCALE_EVENTS", "stdout:", func(text string) (Events, error) { return ParseEvents(e.lookup, text) }),
		Shards:            setting(e, mistakes, "FEEDSCALE_SHARD_QUEUE", "", parseShardQueue(e.lookup)),
		ShardSize:         setting(e, mistakes, "FEEDSCALE_SHARD_SIZE", "20000", numbers(0, math.MaxInt, "whole numbers of leases, 0 = never hand over")),
	}
	if e.setting("FEEDSCALE_RU_PRICE", "") != "" {
		s.Ignored = "FEEDSCALE_RU_PRICE"
	}
	if region, ok := e.lookup(regionName); ok && s.Region == "" {
		s.Region = region
	}
	if port, ok := e.lookup(handlerPort); ok {
		s.Listen = parsed(mistakes, handlerPort, net.JoinHostPort("127.0.0.1", port), parseListen)
	}
	if err := checkAPIKey(s.APIKey, s.Listen); err != nil {
		mistakes.Add(Mistake{Field: "FEEDSCALE_API_KEY", Text: err.Error()})
	}
	return s
}

// setting parses one setting, and adds a mistake with its name where it is wrong.
func setting[T any](e *environment, mistakes *Mistakes, name, standard string, parse func(string) (T, error)) T {
	return parsed(mistakes, name, e.setting(name, standard), parse)
}

func parsed[T any](mistakes *Mistakes, name, text string, parse func(string) (T, error)) T {
	value, err := parse(strings.TrimSpace(text))
	if err != nil {
		mistakes.Add(Mistake{Field: name, Text: err.Error()})
	}
	return value
}

// optional returns a parser that accepts "", too.
func optional[T any](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (none T, err error) {
		if text == "" {
			return none, nil
		}
		return parse(text)
	}
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
