package main_test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// update makes the tests rewrite the output on the pages.
var update = flag.Bool("update", false, "write what is printed into the pages of docs")

// mistake is a mistake of a new user, with the expected answer of the program.
type mistake struct {
	part string // heading of its table; "" = that of the mistake before
	done string // what the user did, in Markdown
	make func(*desk)
	args []string // of the tool; empty = poll
	act  func(*desk) testworld.Result

	status         int
	place, allowed string // expected words: where the mistake is, and what to write or do instead
	lines          int    // of the answer; 0 = 1
	do             string // in Markdown
}

// desk is a folder and settings without a mistake, in which mistakes are made.
type desk struct {
	*testing.T
	shop     *testworld.Shop
	folder   string
	settings map[string]string
	user     uint32 // that the tool runs as; 0 = that of this process
}

// partState has the mistakes that need a state, and so a poll that succeeds.
const partState = "State and process"

const rightFile = `processors:
- name: orders
  connection: COSMOS
  databaseId: shop
  containerId: orders
  accountHost: ` + testworld.OrdersHost + `
`

func newDesk(t *testing.T, shop *testworld.Shop) *desk {
	t.Helper()
	d := &desk{T: t, shop: shop, folder: t.TempDir(), settings: shop.Settings()}
	delete(d.settings, "FEEDSCALE_PROCESSORS")
	d.settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
	d.write("processors.yaml", rightFile)
	return d
}

func (d *desk) write(file, text string) {
	d.Helper()
	file = filepath.Join(d.folder, file)
	testworld.Must(d, os.MkdirAll(filepath.Dir(file), 0o755))
	testworld.Must(d, os.WriteFile(file, []byte(text), 0o644))
}

// file replaces a part of the correct processors file.
func file(old, replacement string) func(*desk) {
	return func(d *desk) {
		if !strings.Contains(rightFile, old) {
			d.Fatalf("%q is not in the file", old)
		}
		d.write("processors.yaml", strings.Replace(rightFile, old, replacement, 1))
	}
}

// more adds a field to the processor of the correct file.
func more(field string) func(*desk) {
	return func(d *desk) { d.write("processors.yaml", rightFile+"  "+field+"\n") }
}

func set(name, value string) func(*desk) { return func(d *desk) { d.settings[name] = value } }

func (d *desk) run(args ...string) testworld.Result {
	d.Helper()
	c := prepare(d.T, d.folder, d.settings, args...)
	if d.user != 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: d.user, Gid: d.user}}
	}
	return testworld.Run(d, c)
}

// nobody runs the tool as a user who may read the folder and not write to it; root may do both.
func (d *desk) nobody() {
	if os.Getuid() == 0 {
		d.user = 65534
		for _, folder := range []string{scratch, filepath.Dir(d.folder)} {
			testworld.Must(d, os.Chmod(folder, 0o711))
		}
	}
}

// listing returns the files in the folder with their content.
func (d *desk) listing() (all []string) {
	d.Helper()
	testworld.Must(d, filepath.WalkDir(d.folder, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			path += "\n" + string(text)
		}
		all = append(all, path)
		return err
	}))
	return all
}

// stored leaves a state file in the folder.
func (d *desk) stored() (file string) {
	d.Helper()
	if r := d.run("poll"); r.Status != 0 {
		d.Fatalf("%+v", r)
	}
	return filepath.Join(d.folder, "data", "feedscale.db")
}

const scaledObject = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: orders}
spec:
  scaleTargetRef: {name: orders}
  triggers:
  - type: azure-cosmosdb
    metadata: {connectionFromEnv: COSMOS, databaseId: shop, containerId: orders}
`

const functionJSON = `{"bindings": [{"type": "cosmosDBTrigger", "name": "changes", "direction": "in", "connection": "COSMOS", "databaseName": "shop", "containerName": "orders"}]}
`

const (
	storageString = "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=c2VjcmV0LXN0b3JhZ2Uta2V5;EndpointSuffix=core.windows.net"
	anotherKey    = "d3Jvbmcta2V5LXdyb25nLWtleS13cm9uZy1rZXktd3Jvbmcta2V5LXdyb25nLWtleS13cm9uZy1rZXktd3Jvbmcta2V5LXdyb25nLWs="
)

var keyOf = regexp.MustCompile(`(AccountKey|SharedAccessKey)=([^;]*)`)

func mistakes() []mistake {
	return []mistake{
		{
			part: "The processors file", done: "there is none in the working directory", status: 2,
			make: func(d *desk) { testworld.Must(d, os.Remove(filepath.Join(d.folder, "processors.yaml"))) }, place: "processors.yaml", allowed: "--config",
			do: "`feedscale init` makes one; `--config` or `FEEDSCALE_CONFIG` names another",
		},
		{
			done: "a tab in front of a field", status: 2,
			make: file("  databaseId", "\tdatabaseId"), place: "processors.yaml:4", allowed: "spaces", do: "spaces",
		},
		{
			done: "a quote that nothing closes", status: 2,
			make: file("containerId: orders", `containerId: "orders`), place: "processors.yaml:5", allowed: "quotes", do: "close it, on this line or above",
		},
		{
			done: "saved as UTF-16, as `>` does in Windows PowerShell", status: 2,
			make: func(d *desk) {
				text := []byte{0xff, 0xfe}
				for _, c := range []byte(rightFile) {
					text = append(text, c, 0)
				}
				d.write("processors.yaml", string(text))
			}, place: "processors.yaml", allowed: "UTF-8", do: "save it as UTF-8; a byte order mark does not matter",
		},
		{
			done: "a field that there is not: `containerID`", status: 2, lines: 2,
			make: file("containerId", "containerID"), place: "processors.yaml:5", allowed: "did you mean containerId?", do: "as it says",
		},
		{
			done: "a field of KEDA's ScaledObject: `pollingInterval`", status: 2,
			make: more("pollingInterval: 30"), place: "processors.yaml:7", allowed: "schedule", do: "[import](../../docs/import.md) reads ScaledObjects, and says what has another name here",
		},
		{
			done: "a ScaledObject in place of the file", status: 2, lines: 5,
			make: func(d *desk) { d.write("processors.yaml", scaledObject) }, place: "processors.yaml", allowed: "feedscale import", do: "`feedscale import scaledobject.yaml`",
		},
		{
			done: "the `function.json` of a Functions trigger in place of the file", status: 2, lines: 2,
			make: func(d *desk) { d.write("function.json", functionJSON) }, args: []string{"poll", "--config", "function.json"}, place: "function.json", allowed: "feedscale import", do: "`feedscale import function.json`",
		},
		{
			done: "`${COSMOS}`, as Compose has it", status: 2,
			make: file("connection: COSMOS", "connection: ${COSMOS}"), place: "processors.yaml:3", allowed: "name of", do: "the name alone: `COSMOS`",
		},
		{
			done: "the connection string itself as `connection`", status: 2,
			make: func(d *desk) { file("connection: COSMOS", "connection: "+d.settings["COSMOS"])(d) }, place: "processors.yaml:3", allowed: "name of", do: "put it into a setting, and name that. The key was in a file: regenerate it",
		},
		{
			done: "a name with capitals", status: 2,
			make: file("name: orders", "name: Order Projection"), place: "processors.yaml:2", allowed: "lower-case", do: "`name` is yours to choose; the SDK's name is `processorName`",
		},
		{
			done: "two entries for one processor", status: 2,
			make: func(d *desk) {
				d.write("processors.yaml", rightFile+strings.TrimPrefix(strings.Replace(rightFile, "name: orders", "name: orders-2", 1), "processors:\n"))
			}, place: "processors.yaml:7", allowed: "one entry", do: "one entry, or the `processorName` of each",
		},
		{
			done: "`minReplicaCount` above `maxReplicaCount`", status: 2,
			make: more("minReplicaCount: 5\n  maxReplicaCount: 3"), place: "processors.yaml:", allowed: "5", do: "as it says",
		},
		{
			done: "a duration in words: `stalledAfter: 10 min`", status: 2,
			make: more("stalledAfter: 10 min"), place: "processors.yaml:7", allowed: "5m", do: "`10m`, or a number of seconds",
		},
		{
			done: "five fields of cron in `schedule`", status: 2,
			make: more(`schedule: "*/5 * * * *"`), place: "processors.yaml:7", allowed: "six fields", do: "seconds first: `0 */5 * * * *`",
		},
		{
			done: "a TimeSpan in `schedule`: `00:05:00`", status: 2,
			make: more(`schedule: "00:05:00"`), place: "processors.yaml:7", allowed: "six fields", do: "`0 */5 * * * *`",
		},
		{
			done: "`schedules` without a time zone", status: 2,
			make: more("schedules: [{start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: 3}]"), place: "processors.yaml:7", allowed: "Europe/London", do: "`timezone: Europe/Berlin`, or `UTC`",
		},
		{
			done: "seconds in `schedules`, which are KEDA's", status: 2,
			make: more("schedules: [{timezone: Etc/UTC, start: 0 0 8 * * *, end: 0 18 * * *, desiredReplicas: 3}]"), place: "processors.yaml:7", allowed: "five fields", do: "five fields",
		},
		{
			done: "a key of an account in a label of `target`", status: 2,
			make: func(d *desk) { more("target: {team: " + anotherKey[:86] + "==}")(d) }, place: "processors.yaml:7", allowed: "looks like a secret", do: "take it out. The key was in a file: regenerate it",
		},
		{
			done: "a `databaseId` of `${DB}`, which nothing filled in", status: 2,
			make: file("databaseId: shop", "databaseId: ${DB}"), place: "processors.yaml:4", allowed: "the value itself", do: "the value, or `envsubst < template > processors.yaml`",
		},
		{
			done: "a group that no processor names", status: 2,
			make: func(d *desk) { d.write("processors.yaml", "groups: [{name: workers}]\n"+rightFile) }, place: "processors.yaml:1", allowed: "in its field group", do: "`group: workers` in its members, or no group",
		},
		{
			part: "Settings", done: "the setting that `connection` names is not set", status: 2,
			make: func(d *desk) { delete(d.settings, "COSMOS") }, place: "COSMOS is missing", allowed: "COSMOS__accountEndpoint", do: "[connections](../../docs/configure.md#connections)",
		},
		{
			done: "a typo in a setting: `FEEDSCALE_EVENT`", status: 2,
			make: set("FEEDSCALE_EVENT", "stdout:"), place: "FEEDSCALE_EVENT", allowed: "did you mean FEEDSCALE_EVENTS?", do: "as it says",
		},
		{
			done: "quotes that became a part of the value, as in a file for `docker --env-file`", status: 2,
			make: func(d *desk) { d.settings["COSMOS"] = `"` + d.settings["COSMOS"] + `"` }, place: "COSMOS", allowed: "quotes", do: "no quotes there",
		},
		{
			done: "the connection string of a storage account for Cosmos DB", status: 2,
			make: set("COSMOS", storageString), place: "COSMOS", allowed: "AccountEndpoint=", do: "that of the Cosmos DB account: Keys, in the portal",
		},
		{
			done: "the connection string of the API for MongoDB", status: 2,
			make: set("COSMOS", "mongodb://shop:c2VjcmV0@shop.mongo.cosmos.azure.com:10255/?ssl=true"), place: "COSMOS", allowed: "AccountEndpoint", do: "that of an account of the API for NoSQL: feedscale reads no other",
		},
		{
			done: "the connection string of a Service Bus namespace for Cosmos DB", status: 2,
			make: func(d *desk) { d.settings["COSMOS"] = d.settings["SERVICEBUS"] }, place: "COSMOS", allowed: "AccountEndpoint", do: "that of the Cosmos DB account",
		},
		{
			done: "the account's address in place of its connection string", status: 2,
			make: set("COSMOS", "https://shop.documents.azure.com:443/"), place: "COSMOS", allowed: "__accountEndpoint", do: "`COSMOS__accountEndpoint`, to sign in as an identity",
		},
		{
			done: "`FEEDSCALE_EVENTS` is the connection string", status: 2,
			make: func(d *desk) { d.settings["FEEDSCALE_EVENTS"] = d.settings["SERVICEBUS"] }, place: "FEEDSCALE_EVENTS", allowed: "servicebus:SETTING/QUEUE", do: "`servicebus:SERVICEBUS/scale-events`, with the string in `SERVICEBUS`",
		},
		{
			done: "`FEEDSCALE_EVENTS` names no queue", status: 2,
			make: set("FEEDSCALE_EVENTS", "servicebus:SERVICEBUS"), place: "FEEDSCALE_EVENTS", allowed: "servicebus:SETTING/QUEUE", do: "as above",
		},
		{
			done: "`FEEDSCALE_STATE` is a path", status: 2,
			make: set("FEEDSCALE_STATE", "./data/feedscale.db"), place: "FEEDSCALE_STATE", allowed: "bolt:", do: "`bolt:` before it",
		},
		{
			part: "The account and the queue", done: "the key of another account", status: 1,
			make: func(d *desk) {
				d.settings["COSMOS"] = keyOf.ReplaceAllString(d.settings["COSMOS"], "AccountKey="+anotherKey)
			}, place: "COSMOS", allowed: "key", do: "put the account's current key there",
		},
		{
			done: "a wrong account name", status: 1,
			make: set("COSMOS", "AccountEndpoint=https://shoop.invalid:443/;AccountKey="+anotherKey+";"), place: "shoop.invalid", allowed: "COSMOS", do: "correct the endpoint; of a private endpoint, its name in DNS",
		},
		{
			done: "a wrong `databaseId`", status: 1,
			make: file("databaseId: shop", "databaseId: shops"), place: "shops", allowed: "databaseId", do: "correct it; `feedscale init` shows what there is",
		},
		{
			done: "a wrong `containerId`", status: 1,
			make: file("containerId: orders", "containerId: order"), place: "order", allowed: "containerId", do: "correct it",
		},
		{
			done: "a wrong `processorName`", status: 1, args: []string{"check"},
			make: more("processorName: projection"), place: "lease container shop/leases", allowed: "processorName", do: "as it says; without a check the processor is `bootstrap` for ever, at one replica",
		},
		{
			done: "a lease container that there is not", status: 1, args: []string{"check"},
			make: more("leaseContainerId: lease"), place: "lease", allowed: "leaseContainerId", do: "correct it, or start the application, which makes it",
		},
		{
			done: "a queue that there is not", status: 1, args: []string{"check"},
			make: set("FEEDSCALE_EVENTS", "servicebus:SERVICEBUS/scale-event"), place: `"scale-event"`, allowed: "create", do: "run the command, with your names, or correct the name",
		},
		{
			done: "a service that never answers, behind a firewall that drops what it does not know", status: 1,
			make: set("FEEDSCALE_TICK_TIMEOUT", "2s"), place: "127.0.0.1", allowed: "in time", do: "look at network and endpoint; other accounts are not delayed",
			act: func(d *desk) testworld.Result {
				hanging := testworld.NewShop(d, testworld.Options{})
				hanging.Account.Control(func(*cosmosfake.Request) *cosmosfake.Answer { return &cosmosfake.Answer{Delay: time.Hour} })
				d.settings["COSMOS"] = hanging.Account.ConnectionString()
				return d.run("poll")
			},
		},
		{
			part: partState, done: "the folder of the state file cannot be written to", status: 2,
			make: func(d *desk) { d.nobody(); testworld.Must(d, os.Chmod(d.folder, 0o555)) }, place: "data", allowed: "FEEDSCALE_STATE", do: "another place, or the right to write",
		},
		{
			done: "the state file cannot be written to", status: 2,
			make: func(d *desk) {
				testworld.Must(d, os.Chmod(d.stored(), 0o444))
				d.nobody()
			}, place: "feedscale.db", allowed: "FEEDSCALE_STATE", do: "the owner of the file is the user that feedscale runs as",
		},
		{
			done: "the state file is cut short, by a full disk or a copy", status: 2,
			make: func(d *desk) { testworld.Must(d, os.Truncate(d.stored(), 9000)) }, place: "feedscale.db", allowed: "move it away", do: "restore it, or move it away: [what is lost then](../../docs/operate.md#state)",
		},
		{
			done: "the state file is another file, or damaged", status: 2,
			make: func(d *desk) { d.write("data/feedscale.db", strings.Repeat("orders,shop\n", 2000)) }, place: "feedscale.db", allowed: "move it away", do: "as above",
		},
		{
			done: "two processes on one state file", status: 2,
			make: func(*desk) {}, place: "another process", allowed: "--dry-run",
			act: func(d *desk) testworld.Result {
				run := start(d.T, d.folder, d.settings, "run")
				run.stdout.await(d.T, `-000000000001"`)
				defer run.interrupt(d.T)
				return d.run("poll")
			}, do: "`poll --dry-run`, `status` and `history` ask the one that runs; to have several, use a table",
		},
		{
			done: "the file is edited under `run`, to something with a mistake", status: 2, lines: 2,
			make: func(*desk) {}, place: "processors.yaml:5", allowed: "what was read before goes on",
			act: func(d *desk) testworld.Result {
				run, log := startLogged(d.T, d.folder, d.settings, "run")
				run.stdout.await(d.T, `-000000000001"`)
				file("containerId: orders", "containerID: orders")(d)
				said := testworld.Decode[struct {
					Msg      string
					Mistakes []string
				}](d, []byte(log.await(d.T, `"level":"ERROR"`)))
				run.interrupt(d.T)
				return testworld.Result{Status: 2, Stderr: said.Msg + ": " + strings.Join(said.Mistakes, "\n")}
			}, do: "correct it: `run` looks at the file each second, and takes it up as soon as it is right",
		},
		{
			done: "the port is taken, by `func start` perhaps", status: 2, args: []string{"run"},
			make: func(d *desk) {
				taken, err := net.Listen("tcp", "127.0.0.1:0")
				testworld.Must(d, err)
				d.Cleanup(func() { taken.Close() })
				d.settings["FEEDSCALE_LISTEN"] = taken.Addr().String()
			}, place: "127.0.0.1", allowed: "FEEDSCALE_LISTEN", do: "another address",
		},
	}
}

// answer is what the program says about a mistake: the sentences of standard error, of a table its
// last column, of a check the failures and their fixes.
func answer(d *desk, r testworld.Result, args []string) (said []string) {
	switch {
	case r.Status == 2:
		for line := range strings.Lines(r.Stderr) {
			said = append(said, strings.TrimPrefix(strings.TrimSpace(line), "feedscale: "))
		}
	case args[0] == "check":
		column := 0
		for line := range strings.Lines(r.Stdout) {
			switch status, _, _ := strings.Cut(line, " "); {
			case status == "STATUS":
				column = strings.Index(line, "DETAIL")
			case status == "fail" || status == "warn":
				said = append(said, strings.TrimSpace(line[column:]))
			case strings.Contains(line, " fix: "):
				said = append(said, strings.TrimSpace(line))
			}
		}
	default:
		head, rows, _ := strings.Cut(r.Stdout, "\n")
		row, _, _ := strings.Cut(rows, "\n")
		if column := strings.Index(head, "WHY"); column >= 0 && len(row) > column {
			said = append(said, row[column:])
		}
	}
	port := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	for i := range said {
		said[i] = port.ReplaceAllString(strings.ReplaceAll(said[i], d.folder+"/", ""), "127.0.0.1:8081")
	}
	return said
}

// longest is how many characters of an answer the file shows.
const longest = 260

// cell formats an answer for a Markdown table.
func cell(said []string) string {
	text := strings.Join(said, " / ")
	if len(text) > longest {
		text = text[:strings.LastIndex(text[:longest], " ")] + " …"
	}
	return "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(text) + "`"
}

// TestEachMistakeOfANewUserIsAnswered makes each mistake of testdata/mistakes.md, and holds the answers to
// those on the page.
func TestEachMistakeOfANewUserIsAnswered(t *testing.T) {
	t.Parallel()
	untouched, shop := testworld.NewShop(t, testworld.Options{}), testworld.NewShop(t, testworld.Options{})
	var asked atomic.Int64
	untouched.Account.Control(func(*cosmosfake.Request) *cosmosfake.Answer { asked.Add(1); return nil })
	all := mistakes()
	cells := make([]string, len(all))
	stateful := slices.IndexFunc(all, func(m mistake) bool { return m.part == partState })
	t.Run("each", func(t *testing.T) {
		for i, m := range all {
			t.Run(m.done, func(t *testing.T) {
				t.Parallel()
				world := shop
				if m.status == 2 && i < stateful {
					world = untouched
				}
				d := newDesk(t, world)
				m.make(d)
				args, act := m.args, m.act
				if args == nil {
					args = []string{"poll"}
				}
				before := d.listing()
				if act == nil {
					act = func(d *desk) testworld.Result { return d.run(args...) }
				}
				r := act(d)
				said := answer(d, r, args)
				cells[i] = cell(said)
				text := strings.Join(said, "\n")
				if r.Status != m.status {
					t.Errorf("status %d, want %d: %s", r.Status, m.status, r.Stdout+r.Stderr)
				}
				if !strings.Contains(text, m.place) || !strings.Contains(text, m.allowed) {
					t.Errorf("%q or %q is missing in %q", m.place, m.allowed, text)
				}
				if m.status == 2 && len(said) != max(1, m.lines) {
					t.Errorf("%d lines: %q", len(said), said)
				}
				if after := d.listing(); m.status == 2 && m.act == nil && !slices.Equal(after, before) {
					t.Errorf("something was written: %q, before it was %q", after, before)
				}
				for _, secret := range keyOf.FindAllStringSubmatch(storageString+";"+d.settings["COSMOS"]+";"+d.settings["SERVICEBUS"]+";"+shop.Settings()["COSMOS"], -1) {
					if strings.Contains(r.Stdout+r.Stderr, strings.Trim(secret[2], `"`)) {
						t.Errorf("the key is shown: %s", r.Stdout+r.Stderr)
					}
				}
			})
		}
	})
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests were sent, though the configuration was wrong", n)
	}
	if t.Failed() && !*update {
		return
	}

	var page strings.Builder
	for i, m := range all {
		if m.part != "" {
			fmt.Fprintf(&page, "\n### %s\n\n| what was done | the answer | what to do |\n|---|---|---|\n", m.part)
		}
		fmt.Fprintf(&page, "| %s | %s | %s |\n", m.done, cells[i], m.do)
	}
	const begin, end = "<!-- go test ./functions -run Mistake -update writes from here -->\n", "\n<!-- to here -->"
	name := filepath.Join("testdata", "mistakes.md")
	text, err := os.ReadFile(name)
	testworld.Must(t, err)
	head, rest, _ := strings.Cut(string(text), begin)
	table, tail, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the table", name)
	}
	if *update {
		testworld.Must(t, os.WriteFile(name, []byte(head+begin+page.String()+end+tail), 0o644))
	} else if table != page.String() {
		t.Errorf("%s has\n%s\nand the answers are\n%s", name, table, page.String())
	}
}
