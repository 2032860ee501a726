package app_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
)

// TestThroughputFollowsTheTicksOfAnApp runs an app after another over one state, each with another
// configuration.
func TestThroughputFollowsTheTicksOfAnApp(t *testing.T) {
	t.Parallel()
	clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	w.Create(cosmosfake.ContainerSpec{ID: "views", PartitionKey: []string{"/id"}, Throughput: 500})
	w.Write(testworld.Orders, 30)
	file := filepath.Join(t.TempDir(), "feedscale.db")
	var log bytes.Buffer
	tick := func(fields string, mode poller.Mode) {
		t.Helper()
		c, o := configured(t, w, clock, file, fields)
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		a := opened(t, c, o, mode.DryRun)
		defer a.Close()
		_, err := a.Poll(t.Context(), mode)
		testworld.Must(t, err)
		clock.Advance(time.Minute)
	}
	const containers = `containers: [{container: views, ruPerReplica: 1500}]}`
	for _, step := range []struct {
		rule, fields string
		mode         poller.Mode
		want, writes int
		said         string
	}{
		{"off", "", poller.Mode{All: true}, 500, 0, ""},
		{"recommend changes nothing, and says what is needed", ", throughput: {mode: recommend, " + containers, poller.Mode{All: true}, 500, 0, "throughput is recommended"},
		{"nor does a dry run", ", throughput: {mode: apply, " + containers, poller.Mode{All: true, DryRun: true}, 500, 0, ""},
		{"apply", ", throughput: {mode: apply, " + containers, poller.Mode{All: true}, 1500, 1, "throughput is provisioned"},
		{"and again", ", throughput: {mode: apply, " + containers, poller.Mode{All: true}, 1500, 1, ""},
		{"paused", ", paused: true, throughput: {mode: apply, " + containers, poller.Mode{All: true}, 500, 2, "throughput that was found is back"},
		{"on again", ", throughput: {mode: apply, " + containers, poller.Mode{All: true}, 1500, 3, ""},
		{"recommend", ", throughput: {mode: recommend, " + containers, poller.Mode{All: true}, 500, 4, ""},
		{"on again", ", throughput: {mode: apply, " + containers, poller.Mode{All: true}, 1500, 5, ""},
		{"off", "", poller.Mode{All: true}, 500, 6, ""},
	} {
		log.Reset()
		tick(step.fields, step.mode)
		read, err := w.Client().ReadThroughput(t.Context(), cosmos.Container{Database: testworld.Database, ID: "views"})
		testworld.Must(t, err)
		if writes := w.Account.Requests().Requests[cosmosfake.ReplaceOffer]; read.RUPerSecond != step.want || writes != step.writes {
			t.Errorf("%s: %d RU/s after %d writes, want %d after %d", step.rule, read.RUPerSecond, writes, step.want, step.writes)
		}
		if !strings.Contains(log.String(), step.said) {
			t.Errorf("%s: logged %s", step.rule, log.String())
		}
	}
}
