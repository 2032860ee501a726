package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// scene is where the commands of a page run: a folder, settings, and the page's replacements for
// words that differ in each run, such as an address.
type scene struct {
	t        *testing.T
	folder   string
	settings map[string]string
	words    map[string]string // by the word on the page: the word in the output
}

// scenes are the blocks that TestACommandPrintsWhatItsPageShows runs, by their first words.
var scenes = []struct {
	page, begins string
	set          func(s scene)
}{
	{"docs/configure.md", "$ FEEDSCALE_CONCURENCY", func(s scene) {
		s.settings["COSMOS"] = "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=c2VjcmV0;"
	}},
	{"docs/lag.md", "$ feedscale poll --dry-run --partitions", scene.shop},
	{"docs/operate.md", "$ feedscale check", func(s scene) {
		s.shop()
		s.settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/scale-event"
	}},
	{"docs/operate.md", "$ feedscale run", scene.shop},
	{"docs/operate.md", "$ feedscale inspect", scene.shop},
	{"docs/tune.md", "$ feedscale simulate --trace daily --seeds", func(scene) {}},
	{"docs/tune.md", "$ feedscale simulate --trace daily --policies", func(scene) {}},
}

// shop is an account with two processors, of which orders has a backlog of ten minutes, and a
// namespace.
func (s scene) shop() {
	var behind atomic.Int64
	behind.Store(int64(10 * time.Minute))
	w := testworld.New(s.t, testworld.Options{
		Account: cosmosfake.Options{Now: func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }},
		Queues:  []servicebusfake.QueueSpec{{Name: testworld.Queue}},
	})
	for container, pending := range map[string]int{"orders": 313, "payments": 0} {
		w.Container(container, 4)
		w.Write(container, pending)
		leases := w.LeasesOf("", testworld.OrdersHost, container)
		for i, span := range []leasefake.Range{{Max: "3F"}, {Min: "3F", Max: "7F"}, {Min: "7F", Max: "BF"}, {Min: "BF", Max: "FF"}} {
			w.Put(testworld.Leases, leases.DotNetPK(fmt.Sprint(i), span, leasefake.Fields{Owner: "worker-1", Continuation: leasefake.At(0), Updated: time.Now()}))
		}
	}
	behind.Store(0)
	s.settings["COSMOS"], s.settings["SERVICEBUS"] = w.Account.ConnectionString(), w.Namespace.ConnectionString()
	s.settings["FEEDSCALE_LISTEN"] = testworld.FreeAddress(s.t)
	s.words["127.0.0.1:17071"] = s.settings["FEEDSCALE_LISTEN"]
	s.words["127.0.0.1:18081"] = strings.TrimSuffix(strings.TrimPrefix(w.Account.Endpoint(), "http://"), "/")
	s.words["127.0.0.1:15672"] = w.Namespace.Addr().String()
	const file = "defaults: {connection: COSMOS, databaseId: shop, accountHost: " + testworld.OrdersHost + "}\n" +
		"processors:\n- {name: orders, containerId: orders}\n- {name: payments, containerId: payments}\n"
	testworld.Must(s.t, os.WriteFile(filepath.Join(s.folder, "processors.yaml"), []byte(file), 0o600))
}

// Parts of a page: files that its commands read, words that differ in each run, and a line for
// lines that are left out.
var (
	files   = regexp.MustCompile("(?ms)^```yaml\n# ([a-z]+\\.yaml)\n(.*?)^```$")
	varying = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|"duration":"[^"]*"|"version":"[^"]*"`)
	elision = regexp.MustCompile(`(?m)^ *…\n`)
)

// TestACommandPrintsWhatItsPageShows rewrites the pages with -update, except blocks that leave
// lines out.
func TestACommandPrintsWhatItsPageShows(t *testing.T) {
	t.Parallel()
	var updating sync.Mutex
	for _, c := range scenes {
		t.Run(c.page+" "+c.begins, func(t *testing.T) {
			t.Parallel()
			page := pages(t)[c.page]
			s := scene{t, t.TempDir(), map[string]string{"PATH": filepath.Dir(made(t, buildTool)) + ":" + os.Getenv("PATH")}, map[string]string{}}
			for _, f := range files.FindAllStringSubmatch(page, -1) {
				testworld.Must(t, os.WriteFile(filepath.Join(s.folder, f[1]), []byte(f[0][len("```yaml\n"):len(f[0])-len("```")]), 0o600))
			}
			c.set(s)
			_, block, _ := strings.Cut(page, "```\n"+c.begins)
			block, _, _ = strings.Cut(c.begins+block, "```\n")
			typed := regexp.MustCompile(`^(.*\\\n)*.*\n`).FindString(block)
			want := block[len(typed):]
			got := s.run(typed, want)
			if s.like(want, got) {
				return
			}
			if !*update || elision.MatchString(want) {
				t.Fatalf("the page shows\n%s\nand it prints\n%s", want, got)
			}
			updating.Lock()
			defer updating.Unlock()
			page = strings.Replace(pages(t)[c.page], block, typed+got, 1)
			testworld.Must(t, os.WriteFile(filepath.Join("..", c.page), []byte(page), 0o644))
		})
	}
}

// run types a command of the page and returns its output in the words of the page. It interrupts
// `run` when all expected lines are printed.
func (s scene) run(typed, want string) string {
	s.t.Helper()
	there, back := []string{}, []string{s.folder, "/home/me/shop"}
	for word, is := range s.words {
		there, back = append(there, word, is), append(back, is, word)
	}
	typed = strings.NewReplacer(there...).Replace(strings.TrimPrefix(typed, "$ "))
	c := exec.CommandContext(s.t.Context(), "sh", "-c", regexp.MustCompile(`^feedscale`).ReplaceAllString(typed, "exec $0"))
	printed := &output{}
	c.Dir, c.Env, c.Stdout, c.Stderr = s.folder, append(testworld.Environ(s.settings), "HOME="+s.folder), printed, printed
	got := func() string { return strings.NewReplacer(back...).Replace(printed.String()) }
	testworld.Must(s.t, c.Start())
	if strings.HasPrefix(typed, "feedscale run") {
		testworld.Eventually(s.t, "what the page shows", func() bool { return s.like(want, got()) })
		testworld.Must(s.t, c.Process.Signal(os.Interrupt))
	}
	_ = c.Wait() // a failed check exits with 1
	return got()
}

// like reports whether the output equals what the page shows.
func (s scene) like(page, printed string) bool {
	pattern := regexp.QuoteMeta(varying.ReplaceAllString(page, "…"))
	pattern = elision.ReplaceAllString(pattern, `(.*\n)*?`)
	return regexp.MustCompile("^" + pattern + "$").MatchString(varying.ReplaceAllString(printed, "…"))
}

// tested are the blocks that other tests run or generate, by their first words; "" = every block of
// the page.
var tested = []struct{ page, begins, test string }{
	{"README.md", "$ make run", "TestTheDemoFitsARealTerminalAndFollowsItsSize"},
	{"README.md", "make run ", "TestTheDemoClosesTheLoop_Long"},
	{"README.md", "eval ", "TestEveryCommandOfTheWalkWorksOnTheDemoThatRuns"},
	{"docs/consume.md", "$ feedscale consume", "TestADryRunOfConsumeSaysWhatItWouldDoAndDoesNothing"},
	{"docs/scale-events.md", "feedscale: consuming", "TestAConsumerOfATopicSaysWhatIsWrong"},
	{"docs/http.md", "$ curl -i http://127.0.0.1:17072/api/processors/orders", "TestWhatKEDAReads"},
	{"docs/keda-external-scaler.md", "$ FEEDSCALE_SCALER_LISTEN", "TestRunPushesADecisionWithinASecondOfItsCommit"},
	{"docs/keda-external-scaler.md", "$ FEEDSCALE_API_KEY", "TestScalerAsksTheAPIOfAnother"},
	{"docs/demo.md", "", "TestEveryCommandOfTheWalkWorksOnTheDemoThatRuns"},
	{"docs/import.md", "$ feedscale import", "TestTheDocumentationShowsWhatComesOut"},
	{"docs/install.md", "feedscale version", "TestTheVersionIsAFlagToo"},
	// and every test that starts the tool
	{"docs/install.md", "go build", "TestRunPollsAtOnceAndThenByTheTimer"},
	{"docs/monitor.md", "OTEL_EXPORTER_OTLP_ENDPOINT", "TestWhatAScrapeShowsIsPushed"},
	{"docs/operate.md", "$ make -s dist", "TestTheStagedFolderIsWhatTheHostNeeds"},
	{"docs/operate.md", "azurite --silent", "TestABacklogComesAndGoesUnderTheHost"},
	{"docs/operate.md", "source <(feedscale completion bash)", "TestBashParsesItsCompletion"},
	{"docs/operate.md", "fail    Deployment", "TestWhatFightsOverATargetIsSaidWithWhatEndsIt"},
	{"docs/operate.md", "$ feedscale status", "TestTheDocumentationShowsWhatStatusPrints"},
	{"docs/scale.md", "make dist FANOUT=1", "TestOnlyFanOutNeedsTheExtensionBundle"},
	{"docs/stand-ins.md", "$ feedscale emulate --container", "TestEmulateServesWhatItsFlagsAndFileDescribe"},
	{"docs/stand-ins.md", "$ feedscale emulate --tls", "TestStandInsWithTLSHold"},
	{"docs/stand-ins.md", "$ feedscale emulate --any-token", "TestTheProgramsOfThePageRunAsTheyStand"},
	{"docs/stand-ins.md", "feedscale emulate --control", "TestEmulateTakesFaultsOverHTTP"},
	{"docs/stand-ins.md", "# to publish", "TestEachConsumerOfATopicGetsTheDecision"},
	{"docs/start.md", "", "TestTheFirstProcessorIsWatchedAsThePageSays"},
	{"docs/status.md", "", "TestEachCodeIsOnThePage"},
	{"docs/tune.md", "$ feedscale history", "TestHistoryDrawsWhatWasRecorded"},
}

// notRun matches the sentence, in a section or at the top of a page, that says that commands were
// not run.
var notRun = regexp.MustCompile(`\b(was|were) not\s+run\b|\(not\s+run|# not run|Not run`)

// TestEveryBlockIsRunOrMarked: a test runs each block of commands on a page, or the page says that
// none does.
func TestEveryBlockIsRunOrMarked(t *testing.T) {
	t.Parallel()
	used := make(map[string]bool)
	for name, page := range pages(t) {
		for _, block := range shells(page) {
			found := notRun.MatchString(block.section)
			covers := func(page, begins string) {
				if page == name && strings.HasPrefix(strings.TrimSpace(block.text), begins) {
					found, used[page+begins] = true, true
				}
			}
			for _, c := range scenes {
				covers(c.page, c.begins)
			}
			for _, c := range tested {
				covers(c.page, c.begins)
			}
			if !found {
				t.Errorf("%s: no test runs this, and the page does not say that it was not run:\n%s", name, block.text)
			}
		}
	}
	var tests strings.Builder
	for _, root := range []string{".", "../pkg"} {
		testworld.Must(t, filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(file, "_test.go") {
				text, err := os.ReadFile(file)
				tests.Write(text)
				return err
			}
			return err
		}))
	}
	for _, c := range tested {
		if !used[c.page+c.begins] || !strings.Contains(tests.String(), "\nfunc "+c.test+"(") {
			t.Errorf("%s has no block %q, or there is no %s", c.page, c.begins, c.test)
		}
	}
}
