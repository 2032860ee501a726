package keda_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// wanted is how many replicas a processor of a fleet needs after a write: one for each partition
// with lag.
const wanted = 4

// fleet is an account whose containers, of wanted partitions each, one `feedscale run` watches,
// with a processor of the same name for each. Its events go to the queue scale-events.
type fleet struct {
	*testworld.World
	names    []string
	bus      *servicebusfake.Server
	settings map[string]string
	api      string // http://HOST:PORT
	scaler   string // address of the external scaler

	mu sync.Mutex
	// when it was decided that a processor is to have the wanted replicas
	decided map[string]time.Time
}

// startFleet starts n idle processors. schedule is when they are polled. signals says whether each
// has a signal queue, NAME-replicas.
func startFleet(t *testing.T, n int, schedule string, signals bool) *fleet {
	t.Helper()
	f := &fleet{World: testworld.New(t, testworld.Options{}), decided: make(map[string]time.Time)}
	queues := []string{testworld.Queue}
	var processors []map[string]any
	for i := range n {
		name := fmt.Sprintf("p%02d", i+1)
		p := map[string]any{
			"name": name, "connection": "COSMOS", "databaseId": testworld.Database, "containerId": name, "accountHost": testworld.OrdersHost,
			"changeFeedLagThreshold": 1, "target": map[string]any{"deployment": name},
		}
		if signals {
			p["signalQueue"] = name + "-replicas"
			queues = append(queues, name+"-replicas")
		}
		f.names, processors = append(f.names, name), append(processors, p)
		f.fill(t, name)
	}
	f.bus = startBus(t, queues...)
	f.bus.Control(f.listen)
	file, err := json.Marshal(map[string]any{"processors": processors})
	testworld.Must(t, err)
	address := testworld.FreeAddress(t)
	f.api, f.scaler = "http://"+address, testworld.FreeAddress(t)
	f.settings = map[string]string{
		"COSMOS": f.Account.ConnectionString(), "SERVICEBUS": f.bus.ConnectionString(), "SSL_CERT_FILE": busAuthority(t),
		"FEEDSCALE_EVENTS": "servicebus:SERVICEBUS/" + testworld.Queue, "FEEDSCALE_PROCESSORS": string(file), "FEEDSCALE_TIMER_SCHEDULE": schedule,
	}
	f.program(t, map[string]string{"FEEDSCALE_LISTEN": address, "FEEDSCALE_SCALER_LISTEN": f.scaler}, "run")
	testworld.Eventually(t, "a decision of each processor", func() bool { return f.asleep(t) == n })
	return f
}

// fill makes a container that was processed up to its end, at LSN 0.
func (f *fleet) fill(t *testing.T, name string) {
	t.Helper()
	f.Container(name, wanted)
	ranges, _, err := f.Client().Ranges(t.Context(), cosmos.Container{Database: testworld.Database, ID: name})
	testworld.Must(t, err)
	leases := f.LeasesOf("", testworld.OrdersHost, name)
	for _, r := range ranges {
		f.Put(testworld.Leases, leases.DotNetPK(r.ID, leasefake.Range(r.Span()), testworld.At(0)))
	}
}

// program runs feedscale until the end of the test.
func (f *fleet) program(t *testing.T, settings map[string]string, args ...string) {
	t.Helper()
	folder := t.TempDir()
	environ := maps.Clone(f.settings)
	maps.Copy(environ, settings)
	c := exec.Command(tool, args...)
	c.Dir, c.Env = folder, append(testworld.Environ(environ), "HOME="+folder)
	said, err := os.Create(filepath.Join(folder, "said"))
	testworld.Must(t, err)
	c.Stdout, c.Stderr = said, said
	testworld.Must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // which says that it was killed
		testworld.Must(t, said.Close())
		if text, err := os.ReadFile(said.Name()); err == nil && t.Failed() {
			t.Logf("feedscale %s said\n%s", args[0], text)
		}
	})
}

// asleep is how many processors are known to need no replica.
func (f *fleet) asleep(t *testing.T) (n int) {
	t.Helper()
	answer, err := http.Get(f.api + "/api/processors?fields=summary")
	if err != nil {
		return 0 // it does not listen yet
	}
	defer answer.Body.Close()
	var list struct {
		Processors []struct{ DesiredReplicas *int }
	}
	testworld.Must(t, json.NewDecoder(answer.Body).Decode(&list))
	for _, p := range list.Processors {
		if p.DesiredReplicas != nil && *p.DesiredReplicas == 0 {
			n++
		}
	}
	return n
}

// listen notes the times of the decisions, which their events tell.
func (f *fleet) listen(r *servicebusfake.Request) *servicebusfake.Answer {
	if r.Op != servicebusfake.OpSend || r.Entity != testworld.Queue {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range r.Messages {
		var event struct {
			Subject string
			Time    time.Time
			Data    struct{ DesiredReplicas int }
		}
		if json.Unmarshal(m.Body, &event) == nil && event.Data.DesiredReplicas == wanted && f.decided[event.Subject].IsZero() {
			f.decided[event.Subject] = event.Time
		}
	}
	return nil
}

func (f *fleet) decidedAt(name string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.decided[name]
}

// change writes to each partition of a processor's container, and returns when it began to.
func (f *fleet) change(name string) time.Time {
	began := time.Now()
	f.Write(name, 24) // which leaves none of four partitions out
	return began
}

// busAuthority is a file with the certificate of the namespaces, for a process that is to trust it.
func busAuthority(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	testworld.Must(t, os.WriteFile(file, busPEM, 0o600))
	return file
}
