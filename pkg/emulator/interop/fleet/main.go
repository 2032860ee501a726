// Command fleet runs hosts of Java's change feed processor and of pkg/changefeedprocessor on one
// lease container, while ranges are split and merged, hosts are stopped and killed, and the account
// throttles: fleet [-rounds N] [-seed S] (pk|epk) PROGRAM [ARGUMENT...], where PROGRAM is
// Fleet.java. It fails unless every change was handled at least once and, first deliveries alone,
// in the order of its key.
//
// The command is internal to the project: its output may change in any release.
package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/lifeline"
)

func main() {
	rounds := flag.Int("rounds", 20, "splits, merges, kills and so on")
	seed := flag.Uint64("seed", 1, "of what happens in them")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: fleet [-rounds N] [-seed S] (pk|epk) PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	if err := run(*rounds, *seed, flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

const (
	customers = 30
	mostHosts = 3 // of each kind
)

// fleet is the account and the hosts on it.
type fleet struct {
	account *cosmosfake.Server
	network *http.Transport
	epk     bool
	program []string
	env     []string
	random  *rand.Rand

	ranges    []string // ids, in the order of their keys
	written   map[string]int
	throttled atomic.Bool
	started   int
	hosts     []*host
	java      *machine

	mu      sync.Mutex
	handled []delivery
}

// delivery is a change that reached a handler.
type delivery struct {
	at       int64 // microseconds since 1970
	customer string
	number   int
}

func run(rounds int, seed uint64, format string, program []string) (err error) {
	dir, err := os.MkdirTemp("", "feedscale-fleet-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	certificates, ca, err := emulator.LoadCertificate(dir, time.Now())
	if err != nil {
		return err
	}
	account, err := cosmosfake.Start(cosmosfake.Options{TLS: certificates})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	if err := errors.Join(
		account.CreateDatabase("shop"),
		account.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/customer"}, Partitions: 4}),
		account.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "leases", PartitionKey: []string{"/id"}, DefaultTTL: -1}),
	); err != nil {
		return err
	}
	f := &fleet{
		account: account, network: trusting(certificates), epk: format == "epk", program: append(program, format),
		env:     append(os.Environ(), "COSMOS_ENDPOINT="+account.Endpoint(), "COSMOS_KEY="+cosmosfake.WellKnownKey, "COSMOS_CA="+ca),
		random:  rand.New(rand.NewPCG(seed, 31)),
		ranges:  []string{"0", "1", "2", "3"},
		written: map[string]int{},
	}
	defer f.network.CloseIdleConnections()
	account.Control(f.throttle)
	defer f.end()
	if err := f.boot(); err != nil {
		return err
	}
	f.java.start()
	if err := f.first(); err != nil {
		return err
	}
	f.start()
	for round := range rounds {
		what, err := f.turn()
		if err != nil {
			return fmt.Errorf("round %d, %s: %w", round, what, err)
		}
		if err := f.write(20); err != nil {
			return err
		}
		time.Sleep(time.Duration(200+f.random.IntN(1500)) * time.Millisecond)
	}
	f.throttled.Store(false)
	f.start()
	f.java.start()
	return f.settle(rounds)
}

// trusting is a transport of a client that trusts a certificate.
func trusting(certificates *tls.Config) *http.Transport {
	pool := x509.NewCertPool()
	for _, c := range certificates.Certificates {
		if parsed, err := x509.ParseCertificate(c.Certificate[0]); err == nil {
			pool.AddCert(parsed)
		}
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 64}
}

// throttle refuses documents and leases while the account is throttled.
func (f *fleet) throttle(r *cosmosfake.Request) *cosmosfake.Answer {
	if !f.throttled.Load() || r.Document == "" && r.Kind != cosmosfake.ReadChangeFeed {
		return nil
	}
	return &cosmosfake.Answer{Status: http.StatusTooManyRequests, Substatus: 3200, Header: http.Header{"X-Ms-Retry-After-Ms": {"50"}}}
}

// turn does something to the fleet.
func (f *fleet) turn() (what string, err error) {
	at := f.random.IntN(len(f.ranges))
	switch dice := f.random.IntN(20); {
	case dice < 4 && len(f.ranges) < 8:
		children, err := f.account.Split("shop", "orders", f.ranges[at])
		f.ranges = slices.Replace(f.ranges, at, at+1, children...)
		return "split", err
	case dice < 8 && f.epk && len(f.ranges) > 2: // Java's PK leases follow no merge
		at = min(at, len(f.ranges)-2)
		child, err := f.account.Merge("shop", "orders", f.ranges[at], f.ranges[at+1])
		f.ranges = slices.Replace(f.ranges, at, at+2, child)
		return "merge", err
	case dice < 11 && len(f.hosts) > 0:
		h := f.hosts[0]
		f.hosts = f.hosts[1:]
		h.kill()
		return "kill", nil
	case dice < 13 && len(f.hosts) > 0:
		h := f.hosts[0]
		f.hosts = f.hosts[1:]
		f.throttled.Store(false) // while every write is refused, no lease can be handed back
		return "stop", h.end()
	case dice == 13:
		f.java.kill()
		if err := f.boot(); err != nil {
			return "kill -9", err
		}
		f.java.start()
		return "kill -9", nil
	case dice < 15 && len(f.java.names) > 1:
		f.java.stop()
		return "stop Java", nil
	case dice == 15:
		f.throttled.Store(!f.throttled.Load())
		return "throttle", nil
	case dice < 18 && len(f.java.names) < mostHosts:
		f.java.start()
		return "start Java", nil
	case len(f.hosts) < mostHosts:
		f.start()
		return "start", nil
	}
	return "nothing", nil
}

// write writes orders of random customers, each with the next number of its own.
func (f *fleet) write(n int) error {
	for range n {
		customer := fmt.Sprint("customer-", f.random.IntN(customers))
		f.written[customer]++
		number := f.written[customer]
		if err := f.account.Upsert("shop", "orders", map[string]any{"id": fmt.Sprintf("%s-%d", customer, number), "customer": customer, "number": number}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) took(d delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled = append(f.handled, d)
}

// first waits until Java's host handles changes: then the leases are Java's, and the other hosts keep the format.
func (f *fleet) first() error {
	if err := f.write(20); err != nil {
		return err
	}
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(100 * time.Millisecond) {
		if seen, err := f.judge(); err != nil || seen > 0 {
			return err
		}
	}
	return errors.New("the host of Java handled nothing")
}

// settle waits until every change was handled, and checks the promises.
func (f *fleet) settle(rounds int) error {
	all := 0
	for _, n := range f.written {
		all += n
	}
	for late := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		seen, err := f.judge()
		switch {
		case err != nil:
			return err
		case seen == all:
			fmt.Printf("%d rounds: %d changes were handled in order, %d deliveries\n", rounds, all, len(f.handled))
			return nil
		case time.Now().After(late):
			return fmt.Errorf("%d of %d changes were handled", seen, all)
		}
	}
}

// judge counts the changes that were handled, and fails if one came before an earlier one of its
// key.
func (f *fleet) judge() (seen int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ordered := slices.Clone(f.handled)
	slices.SortStableFunc(ordered, func(a, b delivery) int { return cmp.Compare(a.at, b.at) })
	newest := map[string]int{}
	for _, d := range ordered {
		switch next := newest[d.customer] + 1; {
		case d.number == next:
			newest[d.customer]++
			seen++
		case d.number > next:
			return seen, fmt.Errorf("%s: %d came before %d", d.customer, d.number, next)
		}
	}
	return seen, nil
}

// end kills what runs.
func (f *fleet) end() {
	for _, h := range f.hosts {
		h.kill()
	}
	f.java.kill()
}

// host is a host of pkg/changefeedprocessor.
type host struct {
	line  *lifeline.Line
	stop  context.CancelFunc
	ended chan error
}

func (h *host) kill() {
	h.line.Cut()
	h.stop()
}

func (h *host) end() error {
	h.stop()
	err := <-h.ended
	h.line.Cut()
	return err
}

// start starts a host, at a tenth of the intervals.
func (f *fleet) start() {
	f.started++
	h := &host{line: lifeline.New(f.network), ended: make(chan error, 1)}
	client, err := azcosmos.NewClientFromConnectionString(f.account.ConnectionString(),
		changefeedprocessor.ClientOptions(&azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: h.line}}))
	if err != nil {
		panic(err) // the connection string is the account's own
	}
	p, err := changefeedprocessor.New(
		changefeedprocessor.Container{Client: client, Database: "shop", ID: "orders"},
		changefeedprocessor.Container{Client: client, Database: "shop", ID: "leases"},
		changefeedprocessor.Options{
			Name: "fleet", Instance: fmt.Sprint("go-", f.started), FromBeginning: true, MaxItems: 7,
			AcquireInterval: 1300 * time.Millisecond, RenewInterval: 1700 * time.Millisecond,
			ExpirationInterval: 6 * time.Second, PollInterval: 100 * time.Millisecond, RetryDelay: 100 * time.Millisecond,
			Handle: func(_ context.Context, b changefeedprocessor.Batch) error {
				for _, item := range b.Items {
					var order struct {
						Customer string
						Number   int
					}
					if err := json.Unmarshal(item, &order); err != nil {
						return err
					}
					f.took(delivery{time.Now().UnixMicro(), order.Customer, order.Number})
				}
				return nil
			},
		})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() { h.ended <- p.Run(ctx) }()
	f.hosts = append(f.hosts, h)
}

// machine is a Java process with its hosts.
type machine struct {
	command *exec.Cmd
	in      io.Writer
	started *int
	names   []string
}

// boot starts a Java process without hosts.
func (f *fleet) boot() error {
	m := &machine{command: exec.Command(f.program[0], f.program[1:]...), started: &f.started}
	m.command.Env, m.command.Stderr = f.env, os.Stderr
	m.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := m.command.StdinPipe()
	if err != nil {
		return err
	}
	out, err := m.command.StdoutPipe()
	if err != nil {
		return err
	}
	m.in = in
	if err := m.command.Start(); err != nil {
		return err
	}
	f.java = m
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		return errors.New("the Java process did not come up")
	}
	go func() {
		for lines.Scan() {
			var d delivery
			if _, err := fmt.Sscanf(lines.Text(), "handled %d %s %d", &d.at, &d.customer, &d.number); err != nil {
				fmt.Fprintln(os.Stderr, strings.TrimSpace(lines.Text()))
				continue
			}
			f.took(d)
		}
	}()
	return nil
}

func (m *machine) start() {
	*m.started++
	name := fmt.Sprint("java-", *m.started)
	m.names = append(m.names, name)
	_, _ = fmt.Fprintln(m.in, "start "+name) // a process that died is seen at the end
}

func (m *machine) stop() {
	_, _ = fmt.Fprintln(m.in, "stop "+m.names[0])
	m.names = m.names[1:]
}

// kill ends the process and those that it started, at once.
func (m *machine) kill() {
	if m == nil || m.command.Process == nil {
		return
	}
	_ = syscall.Kill(-m.command.Process.Pid, syscall.SIGKILL)
	_ = m.command.Wait()
}
