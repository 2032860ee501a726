package config_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/feedscale/feedscale/pkg/config"
)

const cosmosSetting = "COSMOS__accountEndpoint=https://shop.documents.azure.com/"

// document is a document with one processor.
func document(name string) string {
	return "processors: [{name: " + name + ", connection: COSMOS, databaseId: shop, containerId: orders}]"
}

func TestWhereTheProcessorsStand(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"processors.yaml":     {Data: []byte(document("working-directory"))},
		"app/processors.yaml": {Data: []byte(document("app-root"))},
		"configured.yaml":     {Data: []byte(document("configured"))},
		"flag.json":           {Data: []byte(document("flag"))},
	}
	inline := "FEEDSCALE_PROCESSORS=" + document("inline")
	for _, c := range []struct {
		name         string
		environ      []string
		flag         string
		want, source string
	}{
		{"by default in the working directory", nil, "", "working-directory", "processors.yaml"},
		{"under a Functions host in its root", []string{"FUNCTIONS_APP_ROOT_PATH=app"}, "", "app-root", filepath.Join("app", "processors.yaml")},
		{"FEEDSCALE_CONFIG names the file", []string{"FUNCTIONS_APP_ROOT_PATH=app", "FEEDSCALE_CONFIG=configured.yaml"}, "", "configured", "configured.yaml"},
		{"FEEDSCALE_PROCESSORS wins over the file", []string{"FEEDSCALE_CONFIG=configured.yaml", inline}, "", "inline", "FEEDSCALE_PROCESSORS"},
		{"--config wins over both", []string{"FEEDSCALE_CONFIG=configured.yaml", inline}, "flag.json", "flag", "flag.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Read(config.Input{Environ: append([]string{cosmosSetting}, c.environ...), File: c.flag, ReadFile: files.ReadFile})
			if err != nil {
				t.Fatal(err)
			}
			if got.Processors[0].Name != c.want || got.Source != c.source {
				t.Errorf("got %s from %s, want %s from %s", got.Processors[0].Name, got.Source, c.want, c.source)
			}
		})
	}
}

func TestMistakesOfSettingsAndProcessorsAreReportedTogether(t *testing.T) {
	t.Parallel()
	_, err := config.Read(config.Input{Environ: []string{
		"FEEDSCALE_CONCURENCY=8",
		"FEEDSCALE_LOG_LEVEL=loud",
		"FEEDSCALE_STATE=nowhere",
		"FEEDSCALE_PROCESSORS=" + strings.Replace(document("Orders"), "COSMOS", "BAD", 1),
		"BAD=AccountEndpoint=https://shop.documents.azure.com/;AccountKey=" + testKey[:13],
	}})
	contains(t, err)
	var got []string
	for _, mistake := range asMistakes(t, err) {
		got = append(got, mistake.Field)
	}
	want := []string{
		"FEEDSCALE_CONCURENCY", "FEEDSCALE_LOG_LEVEL", "FEEDSCALE_STATE",
		"processors[0] (Orders).connection", "processors[0] (Orders).name",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	contains(t, err,
		"FEEDSCALE_CONCURENCY: is an unknown setting; did you mean FEEDSCALE_CONCURRENCY?\n",
		"FEEDSCALE_PROCESSORS:1: processors[0] (Orders).connection: the setting BAD (AccountKey) is not base64")
}

func TestUnknownSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		environ []string
		want    string // "" = no mistake
	}{
		{"a typo", []string{"FEEDSCALE_EVENT=stdout:"}, "FEEDSCALE_EVENT: is an unknown setting; did you mean FEEDSCALE_EVENTS?"},
		{"another case", []string{"feedscale_events=stdout:"}, "feedscale_events: is an unknown setting; did you mean FEEDSCALE_EVENTS?"},
		{"nothing like any", []string{"FEEDSCALE_WHATEVER_THIS_IS=x"}, "FEEDSCALE_WHATEVER_THIS_IS: is an unknown setting; allowed are FEEDSCALE_CONFIG, "},
		{"a value that is secret", []string{"FEEDSCALE_KEY=" + testKey}, "FEEDSCALE_KEY: is an unknown setting"},
		{"a connection of the user's own that is referred to", []string{
			"FEEDSCALE_BUS__fullyQualifiedNamespace=shop.servicebus.windows.net", "FEEDSCALE_BUS__clientId=" + clientID, "FEEDSCALE_EVENTS=servicebus:FEEDSCALE_BUS/scale"}, ""},
		{"variables of others", []string{"FEED_SCALE=1", "PATH=/bin"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Read(config.Input{Environ: append(c.environ, cosmosSetting, "FEEDSCALE_PROCESSORS="+document("orders"))})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			contains(t, err, c.want)
		})
	}
}

func TestWhatPublishesIsToldToTakeTheTopicOfASubscription(t *testing.T) {
	t.Parallel()
	environ := []string{"BUS__fullyQualifiedNamespace=shop.servicebus.windows.net", "FEEDSCALE_EVENTS=servicebus:BUS/scale/subscriptions/audit"}
	if _, err := config.ReadSettings(environ); err != nil {
		t.Errorf("to consume it is allowed, and refused: %v", err)
	}
	_, err := config.Read(config.Input{Environ: append(environ, cosmosSetting, "FEEDSCALE_PROCESSORS="+document("orders"))})
	contains(t, err, `FEEDSCALE_EVENTS: "scale/Subscriptions/audit" is a subscription, to which nothing can be published`, "allowed is servicebus:BUS/scale")
}

func TestAQueueOfShardsNeedsTheFunctionThatTakesFromIt(t *testing.T) {
	t.Parallel()
	poll, shard := "app/poll/function.json", "app/shard/function.json"
	for _, c := range []struct {
		name   string
		staged []string
		queue  string
		want   string // "" = no mistake
	}{
		{"staged", []string{poll, shard}, "shards", ""},
		{"not staged", []string{poll}, "shards", "FEEDSCALE_SHARD_QUEUE: is set, and the function shard, which takes from that queue, is not staged; allowed are an app staged by make dist FANOUT=1, or no queue"},
		{"no function app is there to be seen", nil, "shards", ""},
		{"no queue", []string{poll}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			for _, name := range c.staged {
				files[name] = &fstest.MapFile{}
			}
			_, err := config.Read(config.Input{ReadFile: files.ReadFile, Environ: []string{
				cosmosSetting, "FEEDSCALE_PROCESSORS=" + document("orders"), "FUNCTIONS_APP_ROOT_PATH=app",
				"FEEDSCALE_SHARD_QUEUE=" + c.queue, "FEEDSCALE_SHARDS__fullyQualifiedNamespace=shop.servicebus.windows.net",
			}})
			if c.want == "" && err != nil {
				t.Error(err)
			}
			if c.want != "" {
				contains(t, err, c.want)
			}
		})
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"there is none", fs.ErrNotExist, "processors.yaml: there is no such file; name the processors file with --config or FEEDSCALE_CONFIG, or put its content into FEEDSCALE_PROCESSORS"},
		{"it is not ours", &fs.PathError{Op: "open", Path: "processors.yaml", Err: fs.ErrPermission}, "processors.yaml: cannot be read (permission denied); "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Read(config.Input{ReadFile: func(string) ([]byte, error) { return nil, c.err }})
			contains(t, err, c.want)
		})
	}
}
