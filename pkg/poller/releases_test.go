package poller_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	bolt "go.etcd.io/bbolt"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// releases has a folder for each release, or commit between releases, whose states differ: the state
// file and the rows of the table that it wrote (record).
const releases = "../state/testdata/releases"

// record has a release write its states into the folder of its name before they are read:
// go test ./pkg/poller -run Releases -record "$PWD/feedscale-NAME"
var record = flag.String("record", "", "a `program`, feedscale-RELEASE, whose states are to be recorded")

// withoutHistory is a release that kept no history yet.
const withoutHistory = "c7d278a"

const (
	stateFile = "feedscale.db"
	rowsFile  = "rows.json"
)

func TestWhatEarlierReleasesRememberedIsGoneOnWith(t *testing.T) {
	account := tables(t)
	if *record != "" {
		recordRelease(t, *record, account)
	}
	folders, err := os.ReadDir(releases)
	testworld.Must(t, err)
	if len(folders) < 6 {
		t.Fatalf("there are %d releases", len(folders))
	}
	for i, release := range folders {
		folder := filepath.Join(releases, release.Name())
		t.Run(release.Name()+" in a file", func(t *testing.T) {
			file := filepath.Join(t.TempDir(), stateFile)
			testworld.Must(t, os.WriteFile(file, unpacked(t, filepath.Join(folder, stateFile+".gz")), 0o600))
			store, err := boltstore.Open(file)
			testworld.Must(t, err)
			goesOn(t, store, release.Name() != withoutHistory)
		})
		t.Run(release.Name()+" in a table", func(t *testing.T) {
			name := fmt.Sprintf("release%d", i)
			fill(t, account, name, filepath.Join(folder, rowsFile))
			store, err := tablestore.OpenWithConnectionString(account, name, azcore.ClientOptions{Transport: bounded.NewClient()})
			testworld.Must(t, err)
			goesOn(t, store, release.Name() != withoutHistory)
		})
	}
}

// goesOn polls once upon a store that an earlier release left after its second poll: at 4 replicas, of
// which the broker does not know yet.
func goesOn(t *testing.T, store state.Store, hasHistory bool) {
	t.Helper()
	t.Cleanup(func() { testworld.Must(t, store.Close()) })
	before, err := storetest.Load(t.Context(), store, testworld.Orders)
	testworld.Must(t, err)
	s := before.State
	if s.Sequence != 2 || s.Memory.Replicas == nil || *s.Memory.Replicas != 4 || len(s.Memory.Recommendations) == 0 || len(s.Lag.Partitions) != 4 || s.Published == nil {
		t.Fatalf("it remembers %+v", s)
	}
	if len(before.Outbox) != 1 || before.Outbox[0].Sequence != 2 {
		t.Fatalf("its outbox is %v", before.Outbox)
	}
	if e, err := events.Decode(before.Outbox[0].Body); err != nil || e.DesiredReplicas != 4 {
		t.Errorf("its event is %v, %v", e.DesiredReplicas, err)
	}

	history := func() []state.Sample {
		samples, err := store.History(t.Context(), testworld.Orders, time.Time{}, s.AttemptedAt.Add(time.Hour))
		testworld.Must(t, err)
		return samples
	}
	earlier := history()
	if hasHistory != (len(earlier) > 0) {
		t.Errorf("its history has %d samples", len(earlier))
	}

	w := newWorld(t)
	w.poller.Store = store
	w.poller.Processors[0].Policy.Behavior.ScaleDown.StabilizationWindow = 5 * time.Minute
	w.poller.Processors[0].Container.ID = four
	w.clock.Set(s.AttemptedAt.Add(30 * time.Second))
	fourPartitions(w.World, "acct")
	w.Write(four, 15)
	result := w.tick()
	if len(result.Polled) != 1 || result.Uncommitted != 0 || result.Unpublished != 0 {
		t.Fatalf("the tick is %+v", result)
	}
	after, err := storetest.Load(t.Context(), store, testworld.Orders)
	testworld.Must(t, err)
	if d := after.State.Decision; d == nil || d.Replicas != 4 || d.Previous == nil || *d.Previous != 4 {
		t.Errorf("a lag of 15 at 10 a replica is decided as %+v, though 4 were recommended 30 s ago", d)
	}
	if s.Epoch != 0 && after.State.Epoch != s.Epoch || after.State.Epoch == 0 {
		t.Errorf("the epoch is %d, and was %d", after.State.Epoch, s.Epoch)
	}
	if after.State.Sequence < 2 || len(after.Outbox) != 0 {
		t.Errorf("the sequence is %d, and %d events wait", after.State.Sequence, len(after.Outbox))
	}
	last := fmt.Sprintf("orders/%d ", after.State.Sequence)
	if got := w.broker.take(t); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], last) || !strings.Contains(got[len(got)-1], "->4 true") {
		t.Errorf("published is %q, and not %s", got, last)
	}
	if got := history(); len(got) != len(earlier)+1 || len(earlier) > 0 && !reflect.DeepEqual(got[:len(earlier)], earlier) {
		t.Errorf("the history was %v, and is %v", earlier, got)
	}
}

func TestAStateOfANewerReleaseIsRefusedByNameAndKeepsNobodyElseWaiting(t *testing.T) {
	t.Parallel()
	account := tables(t)
	const current, newer = `"format":2`, `"format":3`
	if current != fmt.Sprintf(`"format":%d`, state.Format) {
		t.Fatalf("the format is %d", state.Format)
	}
	file := filepath.Join(t.TempDir(), stateFile)
	for kind, store := range map[string]struct {
		open func() (state.Store, error)
		age  func() // makes the state of payments one of a newer release
	}{
		"a file": {
			func() (state.Store, error) { return boltstore.Open(file) },
			func() {
				db, err := bolt.Open(file, 0o600, nil)
				testworld.Must(t, err)
				testworld.Must(t, db.Update(func(tx *bolt.Tx) error {
					states := tx.Bucket([]byte("feedscale.states.v1"))
					return states.Put([]byte("payments"), bytes.Replace(states.Get([]byte("payments")), []byte(current), []byte(newer), 1))
				}))
				testworld.Must(t, db.Close())
			},
		},
		"a table": {
			func() (state.Store, error) {
				return tablestore.OpenWithConnectionString(account, "newer", azcore.ClientOptions{Transport: bounded.NewClient()})
			},
			func() {
				table := tableOf(t, account, "newer")
				row, err := table.GetEntity(t.Context(), "payments", "state", nil)
				testworld.Must(t, err)
				quoted := func(text string) []byte { return []byte(strings.ReplaceAll(text, `"`, `\"`)) }
				_, err = table.UpdateEntity(t.Context(), bytes.Replace(row.Value, quoted(current), quoted(newer), 1), nil)
				testworld.Must(t, err)
			},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			written, err := store.open()
			testworld.Must(t, err)
			testworld.Must(t, written.Commit(t.Context(), "", state.State{Processor: "payments", Sequence: 7}, nil))
			testworld.Must(t, written.Close())
			store.age()
			opened, err := store.open()
			testworld.Must(t, err)
			defer func() { testworld.Must(t, opened.Close()) }()

			w := newWorld(t)
			var log bytes.Buffer
			w.poller.Store, w.poller.Log = opened, slog.New(slog.NewTextHandler(&log, nil))
			payments := w.poller.Processors[0]
			payments.Name = "payments"
			w.poller.Processors = append([]poller.Processor{payments}, w.poller.Processors...)
			for range 2 {
				w.write(5)
				w.tick()
			}
			if record, err := storetest.Load(t.Context(), opened, "orders"); err != nil || record.State.Decision == nil || record.State.Sequence == 0 {
				t.Errorf("orders is %+v, %v", record.State, err)
			}
			_, err = storetest.Load(t.Context(), opened, "payments")
			for _, part := range []string{"payments", "written by a newer release", "format 3", "reads up to 2", "run that release again, or a later one"} {
				if !strings.Contains(fmt.Sprint(err), part) || !strings.Contains(log.String(), part) {
					t.Errorf("%q is not said: %v\n%s", part, err, log.String())
				}
			}
		})
	}
}

// recordRelease has a release poll twice, into a file and into a table: 20 changes at 10 a replica, and
// 40 while the broker is down.
func recordRelease(t *testing.T, program, tables string) {
	t.Helper()
	folder := filepath.Join(releases, strings.TrimPrefix(filepath.Base(program), "feedscale-"))
	testworld.Must(t, os.MkdirAll(folder, 0o750))
	written := filepath.Join(t.TempDir(), stateFile)
	for kind, where := range map[string]string{stateFile: "bolt:" + written, rowsFile: "table:TABLES/recorded"} {
		w := testworld.NewShop(t, testworld.Options{})
		fourPartitions(w.World, testworld.OrdersHost)
		settings := w.Settings()
		settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "containerId: orders", "containerId: "+four, 1)
		settings["FEEDSCALE_EVENTS"], settings["FEEDSCALE_STATE"], settings["TABLES"] = "servicebus:SERVICEBUS/"+testworld.Queue, where, tables
		poll := func(changes int) {
			w.Write(four, changes)
			c := exec.CommandContext(t.Context(), program, "poll")
			c.Env = testworld.Environ(settings)
			if r := testworld.Run(t, c); r.Status == 2 {
				t.Fatalf("%s poll: %s", program, r.Stderr)
			}
		}
		poll(20)
		testworld.Must(t, w.Namespace.Close())
		poll(20)
		if kind == rowsFile {
			testworld.Must(t, os.WriteFile(filepath.Join(folder, rowsFile), rowsOf(t, tables, "recorded"), 0o600))
			continue
		}
		text, err := os.ReadFile(written)
		testworld.Must(t, err)
		var packed bytes.Buffer
		packing := gzip.NewWriter(&packed)
		_, err = packing.Write(text)
		testworld.Must(t, errors.Join(err, packing.Close()))
		testworld.Must(t, os.WriteFile(filepath.Join(folder, stateFile+".gz"), packed.Bytes(), 0o600))
	}
}

// unpacked is the content of a file that is compressed.
func unpacked(t *testing.T, file string) []byte {
	t.Helper()
	packed, err := os.Open(file)
	testworld.Must(t, err)
	defer packed.Close()
	reader, err := gzip.NewReader(packed)
	testworld.Must(t, err)
	text, err := io.ReadAll(reader)
	testworld.Must(t, err)
	return text
}

// four is a container of four partitions.
const four = "four"

// fourPartitions creates it, and a lease for each partition, of which none is processed yet.
func fourPartitions(w *testworld.World, host string) {
	w.Container(four, 4)
	of := w.LeasesOf("", host, four)
	for i := range 4 {
		w.Put(testworld.Leases, of.DotNetPKOld(fmt.Sprint(i), testworld.At(0)))
	}
}

// tableOf is a table as any program sees it.
func tableOf(t *testing.T, account, name string) *aztables.Client {
	t.Helper()
	service, err := aztables.NewServiceClientFromConnectionString(account, nil)
	testworld.Must(t, err)
	return service.NewClient(name)
}

// rowsOf are the rows of a table, in JSON.
func rowsOf(t *testing.T, account, name string) []byte {
	t.Helper()
	var rows []map[string]any
	for pages := tableOf(t, account, name).NewListEntitiesPager(nil); pages.More(); {
		page, err := pages.NextPage(t.Context())
		testworld.Must(t, err)
		for _, entity := range page.Entities {
			row := testworld.Decode[map[string]any](t, entity)
			for column := range row {
				if strings.HasPrefix(column, "odata.") || strings.HasPrefix(column, "Timestamp") {
					delete(row, column)
				}
			}
			rows = append(rows, row)
		}
	}
	text, err := json.MarshalIndent(rows, "", " ")
	testworld.Must(t, err)
	return append(text, '\n')
}

// fill creates a table with the rows of a file.
func fill(t *testing.T, account, name, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	testworld.Must(t, err)
	table := tableOf(t, account, name)
	_, err = table.CreateTable(t.Context(), nil)
	testworld.Must(t, err)
	for _, row := range testworld.Decode[[]json.RawMessage](t, text) {
		_, err := table.AddEntity(t.Context(), row, nil)
		testworld.Must(t, err)
	}
}
