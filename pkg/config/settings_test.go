package config_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/crontab"
)

func TestSettingsHaveTheirDefaults(t *testing.T) {
	t.Parallel()
	got, err := config.ReadSettings(nil)
	if err != nil {
		t.Fatal(err)
	}
	timer, err := crontab.ParseNCRONTAB("*/15 * * * * *")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Settings{
		Timer:       timer,
		State:       config.State{BoltPath: "./data/feedscale.db"},
		ShardSize:   20_000,
		Heartbeat:   10 * time.Minute,
		Listen:      "127.0.0.1:7071",
		Concurrency: 64,
		TickTimeout: time.Minute,
		History:     168 * time.Hour,
		Samples:     5 * time.Minute,
		LogLevel:    slog.LevelInfo,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	const storage = "STORAGE=UseDevelopmentStorage=true"
	const bus = "BUS__fullyQualifiedNamespace=shop.servicebus.windows.net"
	for _, c := range []struct {
		name    string
		environ []string
		holds   func(config.Settings) bool
	}{
		{"an empty setting has its default", []string{"FEEDSCALE_CONCURRENCY="}, func(s config.Settings) bool { return s.Concurrency == 64 }},
		{"spaces around a value do not count", []string{"FEEDSCALE_CONCURRENCY= 8 "}, func(s config.Settings) bool { return s.Concurrency == 8 }},
		{"a heartbeat of 0 is never", []string{"FEEDSCALE_EVENT_HEARTBEAT=0"}, func(s config.Settings) bool { return s.Heartbeat == 0 }},
		{"no series of partitions unless asked for", nil, func(s config.Settings) bool { return !s.MetricsPartitions }},
		{"series of partitions", []string{"FEEDSCALE_METRICS_PARTITIONS=True"}, func(s config.Settings) bool { return s.MetricsPartitions }},
		{"samples of 0 are none", []string{"FEEDSCALE_SAMPLES=0"}, func(s config.Settings) bool { return s.Samples == 0 }},
		{"a tick timeout", []string{"FEEDSCALE_TICK_TIMEOUT=4m30s"}, func(s config.Settings) bool { return s.TickTimeout == 270*time.Second }},
		{"the most that is logged", []string{"FEEDSCALE_LOG_LEVEL=debug"}, func(s config.Settings) bool { return s.LogLevel == slog.LevelDebug }},
		{"the least that is logged", []string{"FEEDSCALE_LOG_LEVEL=error"}, func(s config.Settings) bool { return s.LogLevel == slog.LevelError }},
		{"a log level in any case", []string{"FEEDSCALE_LOG_LEVEL=WARN"}, func(s config.Settings) bool { return s.LogLevel == slog.LevelWarn }},
		{"shards of any size", []string{"FEEDSCALE_SHARD_SIZE=0"}, func(s config.Settings) bool { return s.ShardSize == 0 && s.Shards.Queue == "" }},
		{"a queue of shards and its connection", []string{"FEEDSCALE_SHARD_QUEUE=shards", "FEEDSCALE_SHARDS__fullyQualifiedNamespace=shop.servicebus.windows.net"}, func(s config.Settings) bool {
			return s.Shards.Queue == "shards" && s.Shards.ServiceBus.Namespace == "shop.servicebus.windows.net" && s.Shards.ServiceBus.UsesIdentity()
		}},
		{"a variable without a name is nobody's", []string{"=x"}, func(s config.Settings) bool {
			return s.State == config.State{BoltPath: "./data/feedscale.db"} && s.Events == config.Events{} && s.Ignored == ""
		}},
		{"a budget of request units", []string{"FEEDSCALE_RU_BUDGET=400"}, func(s config.Settings) bool { return s.RUBudget == 400 }},
		{"no listener of probes unless asked for", nil, func(s config.Settings) bool { return s.Health == "" }},
		{"a listener of probes", []string{"FEEDSCALE_HEALTH_LISTEN=:7072"}, func(s config.Settings) bool { return s.Health == ":7072" }},
		{"no external scaler unless asked for", nil, func(s config.Settings) bool { return s.Scaler == config.Scaler{} }},
		{"an external scaler with certificates", []string{"FEEDSCALE_SCALER_LISTEN=:6000", "FEEDSCALE_SCALER_CERT_FILE=a", "FEEDSCALE_SCALER_KEY_FILE=b", "FEEDSCALE_SCALER_CLIENT_CA_FILE=c"}, func(s config.Settings) bool {
			return s.Scaler == config.Scaler{Listen: ":6000", CertFile: "a", KeyFile: "b", ClientCAFile: "c"}
		}},
		{"another feedscale and its key", []string{"FEEDSCALE_URL= https://app.example ", "FEEDSCALE_API_KEY=k"}, func(s config.Settings) bool {
			return s.URL == "https://app.example" && s.APIKey.Reveal() == "k"
		}},
		{"a month of history", []string{"FEEDSCALE_HISTORY=720h"}, func(s config.Settings) bool { return s.History == 720*time.Hour }},
		{"a price, which is ignored", []string{"FEEDSCALE_RU_PRICE=whatever"}, func(s config.Settings) bool { return s.Ignored == "FEEDSCALE_RU_PRICE" }},
		{"no budget", []string{"FEEDSCALE_RU_BUDGET=unlimited"}, func(s config.Settings) bool { return s.RUBudget == 0 }},
		{"the region as App Service names it", []string{"REGION_NAME=West Europe"}, func(s config.Settings) bool { return s.Region == "West Europe" }},
		{"the region as the user names it", []string{"REGION_NAME=West Europe", "FEEDSCALE_REGION=northeurope"}, func(s config.Settings) bool { return s.Region == "northeurope" }},
		{"reads have the priority that the account gives them", nil, func(s config.Settings) bool { return s.Priority == "" }},
		{"a low priority in any case", []string{"FEEDSCALE_PRIORITY=low"}, func(s config.Settings) bool { return s.Priority == "Low" }},
		{"a high priority in any case", []string{"FEEDSCALE_PRIORITY= HIGH "}, func(s config.Settings) bool { return s.Priority == "High" }},
		{"no throughput bucket", []string{"FEEDSCALE_THROUGHPUT_BUCKET=0"}, func(s config.Settings) bool { return s.Bucket == 0 }},
		{"the last throughput bucket", []string{"FEEDSCALE_THROUGHPUT_BUCKET=5"}, func(s config.Settings) bool { return s.Bucket == 5 }},
		{"a timer", []string{"FEEDSCALE_TIMER_SCHEDULE=0 */5 * * * *"}, func(s config.Settings) bool { return s.Timer.String() == "0 */5 * * * *" }},
		{"every interface, when asked for", []string{"FEEDSCALE_LISTEN=:8080"}, func(s config.Settings) bool { return s.Listen == ":8080" }},
		{"a key of the API, without the line break of its file", []string{"FEEDSCALE_API_KEY=k-1\n"}, func(s config.Settings) bool { return s.APIKey.Reveal() == "k-1" }},
		{"under a Functions host its port on loopback", []string{"FEEDSCALE_LISTEN=:8080", "FUNCTIONS_CUSTOMHANDLER_PORT=5001"}, func(s config.Settings) bool { return s.Listen == "127.0.0.1:5001" }},
		{"state in a file", []string{"FEEDSCALE_STATE=bolt:/var/lib/feedscale.db"}, func(s config.Settings) bool { return s.State == config.State{BoltPath: "/var/lib/feedscale.db"} }},
		{"state in a table, with an identity", []string{"FEEDSCALE_STATE=https://shop.table.core.windows.net/feedscale"}, func(s config.Settings) bool {
			return s.State == config.State{Table: config.Table{Name: "feedscale", ServiceURL: "https://shop.table.core.windows.net"}}
		}},
		{"state in a table behind a path", []string{"FEEDSCALE_STATE=https://127.0.0.1:10002/devstoreaccount1/feedscale"}, func(s config.Settings) bool {
			return s.State == config.State{Table: config.Table{Name: "feedscale", ServiceURL: "https://127.0.0.1:10002/devstoreaccount1"}}
		}},
		{"state in a table, with a connection string", []string{"FEEDSCALE_STATE=table:STORAGE/feedscale", storage}, func(s config.Settings) bool {
			return s.State.BoltPath == "" && s.State.Table.Name == "feedscale" && s.State.Table.ServiceURL == "" &&
				s.State.Table.ConnectionString.Reveal() == "UseDevelopmentStorage=true"
		}},
		{"events on standard output", []string{"FEEDSCALE_EVENTS=stdout:"}, func(s config.Settings) bool { return s.Events == config.Events{} }},
		{"events on a queue", []string{"FEEDSCALE_EVENTS=servicebus:BUS/scale/events", bus}, func(s config.Settings) bool {
			return s.Events.Queue == "scale/events" && s.Events.ServiceBus.Namespace == "shop.servicebus.windows.net"
		}},
		{"a subscription", []string{"FEEDSCALE_EVENTS=servicebus:BUS/scale/events/subscriptions/kubernetes-1", bus}, func(s config.Settings) bool {
			return s.Events.Queue == "scale/events" && s.Events.Subscription == "kubernetes-1" && s.Events.Path() == "scale/events/Subscriptions/kubernetes-1"
		}},
		{"a subscription, by a connection string of its topic", []string{"FEEDSCALE_EVENTS=servicebus:BUS/scale/SUBSCRIPTIONS/kubernetes", bus + ";EntityPath=scale"}, func(s config.Settings) bool {
			return s.Events.Queue == "scale" && s.Events.Subscription == "kubernetes"
		}},
		{"the name of a connection in any case", []string{"FEEDSCALE_EVENTS=servicebus:bus/scale", bus}, func(s config.Settings) bool {
			return s.Events.ServiceBus.Namespace == "shop.servicebus.windows.net"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := config.ReadSettings(c.environ)
			if err != nil {
				t.Fatal(err)
			}
			if !c.holds(got) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestSettingMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, setting, value, want string }{
		{"a timer with five fields", "FEEDSCALE_TIMER_SCHEDULE", "* * * * *", "expected exactly 6 fields, found 5"},
		{"samples more often than a second", "FEEDSCALE_SAMPLES", "0.5s", "allowed are 0 (never) or 1s to 168h"},
		{"series of partitions that are neither on nor off", "FEEDSCALE_METRICS_PARTITIONS", "yes", "allowed are true and false"},
		{"a heartbeat below a second", "FEEDSCALE_EVENT_HEARTBEAT", "500ms", "allowed are 0 (never) or 1s to 168h"},
		{"a heartbeat without a unit", "FEEDSCALE_EVENT_HEARTBEAT", "10", `"10" is not allowed; allowed are 0 (never) or 1s to 168h`},
		{"a negative timeout", "FEEDSCALE_TICK_TIMEOUT", "-1s", "allowed are 1s to 1h"},
		{"a timeout of 0", "FEEDSCALE_TICK_TIMEOUT", "0", "allowed are 1s to 1h"},
		{"a history of less than an hour", "FEEDSCALE_HISTORY", "59m", "allowed are 1h to 8760h"},
		{"a history that never ends", "FEEDSCALE_HISTORY", "0", "allowed are 1h to 8760h"},
		{"a budget of nothing", "FEEDSCALE_RU_BUDGET", "0", "allowed are unlimited or request units a second, 1 or more"},
		{"a budget that is no number", "FEEDSCALE_RU_BUDGET", "NaN", "allowed are unlimited or request units a second, 1 or more"},
		{"a concurrency of 0", "FEEDSCALE_CONCURRENCY", "0", "allowed are whole numbers from 1 to 1024"},
		{"a concurrency above the limit", "FEEDSCALE_CONCURRENCY", "1025", "allowed are whole numbers from 1 to 1024"},
		{"a priority between the two", "FEEDSCALE_PRIORITY", "medium", `"medium" is not allowed; allowed are Low and High, or leave it out`},
		{"a throughput bucket above the last", "FEEDSCALE_THROUGHPUT_BUCKET", "6", "allowed are 0 (none) and the throughput buckets 1 to 5"},
		{"a throughput bucket below 0", "FEEDSCALE_THROUGHPUT_BUCKET", "-1", "allowed are 0 (none) and the throughput buckets 1 to 5"},
		{"a throughput bucket by name", "FEEDSCALE_THROUGHPUT_BUCKET", "none", "allowed are 0 (none) and the throughput buckets 1 to 5"},
		{"a queue of shards without a connection", "FEEDSCALE_SHARD_QUEUE", "shards", "set FEEDSCALE_SHARDS to a connection string"},
		{"no name of a queue", "FEEDSCALE_SHARD_QUEUE", "servicebus:SHARDS/shards", "is not the name of a queue"},
		{"leases below none", "FEEDSCALE_SHARD_SIZE", "-1", "0 = never hand over"},
		{"a port alone", "FEEDSCALE_LISTEN", "7071", "is not host:port"},
		{"a port out of range", "FEEDSCALE_LISTEN", "127.0.0.1:70000", "with a port from 0 (any free one) to 65535"},
		{"a port that is none", "FUNCTIONS_CUSTOMHANDLER_PORT", "http", "with a port from 0 (any free one) to 65535"},
		{"a port of probes alone", "FEEDSCALE_HEALTH_LISTEN", "7072", "is not host:port"},
		{"a port of the external scaler alone", "FEEDSCALE_SCALER_LISTEN", "6000", "is not host:port"},
		{"a certificate without its key", "FEEDSCALE_SCALER_CERT_FILE", "tls.crt", `"tls.crt" is not allowed; allowed are certificates with FEEDSCALE_SCALER_KEY_FILE beside them`},
		{"a key without its certificate", "FEEDSCALE_SCALER_KEY_FILE", "tls.key", "allowed are keys with FEEDSCALE_SCALER_CERT_FILE beside them"},
		{"a CA of clients without TLS", "FEEDSCALE_SCALER_CLIENT_CA_FILE", "ca.crt", "allowed are CAs with FEEDSCALE_SCALER_CERT_FILE beside them"},
		{"a log level", "FEEDSCALE_LOG_LEVEL", "verbose", "allowed are debug, info, warn or error"},
		{"state without a scheme", "FEEDSCALE_STATE", "./feedscale.db", "is no place for state; allowed are bolt:PATH"},
		{"state in no file", "FEEDSCALE_STATE", "bolt:", "is no place for state; allowed are bolt:PATH"},
		{"state in plain HTTP", "FEEDSCALE_STATE", "http://shop.table.core.windows.net/feedscale", "is no place for state"},
		{"a connection string in place of its setting", "FEEDSCALE_STATE", "AccountName=shop;AccountKey=" + testKey, "is no place for state"},
		{"a signature in an address", "FEEDSCALE_STATE", "https://shop.table.core.windows.net/feedscale?sig=" + testKey, "carries a query"},
		{"a bad table beside a setting", "FEEDSCALE_STATE", "table:STORAGE/tables", `"tables" is not the name of a table`},
		{"an address without a host", "FEEDSCALE_STATE", "https:///feedscale", "is not the address of a table"},
		{"no table", "FEEDSCALE_STATE", "https://shop.table.core.windows.net", `"" is not the name of a table`},
		{"a bad table", "FEEDSCALE_STATE", "https://shop.table.core.windows.net/feed-scale", `"feed-scale" is not the name of a table`},
		{"a table without a setting", "FEEDSCALE_STATE", "table:feedscale", "is no place for state; allowed are bolt:PATH, https://ACCOUNT.table.core.windows.net/TABLE (identity) or table:SETTING/TABLE"},
		{"a missing storage setting", "FEEDSCALE_STATE", "table:STORAGE/feedscale", "the setting STORAGE is missing"},
		{"events without a scheme", "FEEDSCALE_EVENTS", "BUS/scale", "is no place for events"},
		{"something behind stdout", "FEEDSCALE_EVENTS", "stdout:x", "is no place for events; allowed are stdout:, servicebus:SETTING/QUEUE"},
		{"no queue", "FEEDSCALE_EVENTS", "servicebus:BUS", "is no place for events; allowed are stdout:, servicebus:SETTING/QUEUE"},
		{"a bad queue", "FEEDSCALE_EVENTS", "servicebus:BUS/scale/", "is not the name of a queue or topic"},
		{"a subscription without a name", "FEEDSCALE_EVENTS", "servicebus:BUS/scale/Subscriptions", `"" is not the name of a subscription`},
		{"a subscription without a topic", "FEEDSCALE_EVENTS", "servicebus:BUS//Subscriptions/a", `"" is not the name of a queue or topic`},
		{"a subscription of two parts", "FEEDSCALE_EVENTS", "servicebus:BUS/scale/Subscriptions/a/b", `"a/b" is not the name of a subscription`},
		{"a subscription with a long name", "FEEDSCALE_EVENTS", "servicebus:BUS/scale/Subscriptions/" + strings.Repeat("a", 51), "allowed are up to 50 letters"},
		{"a missing bus", "FEEDSCALE_EVENTS", "servicebus:BUS/scale", "the setting BUS is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.ReadSettings([]string{c.setting + "=" + c.value})
			contains(t, err, c.setting+": ", c.want)
			if got := asMistakes(t, err); len(got) != 1 || got[0].Field != c.setting {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAKeyThatOthersCanTryIsLong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, listen, key string
		refused           bool
	}{
		{"one character", ":7071", "k", true},
		{"one too few", "10.0.0.1:7071", "a-key-of-fifteen"[:15], true},
		{"enough", ":7071", "a-key-of-sixteen", false},
		{"a name may resolve to anything", "feedscale:7071", "k", true},
		{"loopback", "127.0.0.1:7071", "k", false},
		{"loopback by its name", "localhost:7071", "k", false},
		{"none, which is refused where it listens", ":7071", "", false},
		{"an address that is none is the only mistake", "7071", "k", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			_, err := config.ReadSettings([]string{"FEEDSCALE_LISTEN=" + c.listen, "FEEDSCALE_API_KEY=" + c.key, "FEEDSCALE_LOG_LEVEL=verbose"})
			got := asMistakes(t, err)
			if !slices.ContainsFunc(got, func(m config.Mistake) bool { return m.Field == "FEEDSCALE_LOG_LEVEL" }) {
				t.Errorf("the other mistake is not beside it: %v", got)
			}
			if refused := slices.ContainsFunc(got, func(m config.Mistake) bool {
				return m.Field == "FEEDSCALE_API_KEY" && strings.Contains(m.Text, "allowed are 16 characters or more")
			}); refused != c.refused {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestARegionIsKeptAsItIsWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, want string }{
		{"${REGION}", `holds the placeholder "${REGION}"`},
		{"West Europe", ""},
		{"eastus2", ""},
		{"italysouth", ""}, // Azure opens regions
	} {
		t.Run(c.value, func(t *testing.T) {
			t.Parallel()
			settings, err := config.ReadSettings([]string{"FEEDSCALE_REGION=" + c.value})
			if c.want != "" {
				contains(t, err, "FEEDSCALE_REGION: ", c.want)
			} else if err != nil || settings.Region != c.value {
				t.Errorf("got %q and %v", settings.Region, err)
			}
		})
	}
}

func TestATableHasToHaveANameTheServiceAllows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "ab", "1abc", "feed-scale", "feed_scale", "tables", "Tables", "a/b", "täble", strings.Repeat("a", 64)} {
		for _, place := range []string{"https://shop.table.core.windows.net/", "table:STORAGE/"} {
			_, err := config.ReadSettings([]string{"FEEDSCALE_STATE=" + place + name, "STORAGE=UseDevelopmentStorage=true"})
			if err == nil || !strings.Contains(err.Error(), "3 to 63") {
				t.Errorf("%s%s: got %v, want an error that says what is allowed", place, name, err)
			}
		}
	}
}
