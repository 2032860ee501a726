package emulator

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// FaultsSchema is the JSON Schema of what POST /faults takes.
//
//go:embed faults.schema.json
var FaultsSchema []byte

// largestFault is what POST /faults reads of a body.
const largestFault = 1 << 20

// fault is what POST /faults takes: one of its fields.
type fault struct {
	Cosmos     *cosmosFault `json:"cosmos,omitempty"`
	ServiceBus *busFault    `json:"serviceBus,omitempty"`
	Split      *splitFault  `json:"split,omitempty"`
	Merge      *mergeFault  `json:"merge,omitempty"`
	Region     *regionFault `json:"region,omitempty"`
	Failover   *regionName  `json:"failover,omitempty"`
}

// cosmosFault scripts answers of the account; see cosmosfake.Answer.
type cosmosFault struct {
	Kind      cosmosfake.Kind `json:"kind"`
	Region    string          `json:"region,omitempty"`
	Database  string          `json:"database,omitempty"`
	Container string          `json:"container,omitempty"`
	Range     string          `json:"range,omitempty"`
	times

	DelayMS   int               `json:"delayMs,omitempty"`
	Break     bool              `json:"break,omitempty"`
	Status    int               `json:"status,omitempty"`
	Substatus int               `json:"substatus,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Message   string            `json:"message,omitempty"`
	Body      string            `json:"body,omitempty"`
	CutShort  bool              `json:"cutShort,omitempty"`
	EmptyPage bool              `json:"emptyPage,omitempty"`
}

// busFault scripts answers of the namespace; see servicebusfake.Answer.
type busFault struct {
	Operation servicebusfake.Op `json:"operation"`
	Entity    string            `json:"entity,omitempty"`
	times

	DelayMS     int    `json:"delayMs,omitempty"`
	Condition   string `json:"condition,omitempty"`
	Description string `json:"description,omitempty"`
	Status      int    `json:"status,omitempty"`
	Drop        bool   `json:"drop,omitempty"`
	LoseReply   bool   `json:"loseReply,omitempty"`
}

// times is how many more requests meet a fault; 0 = every request until the reset.
type times struct {
	Times *int `json:"times,omitempty"` // default 1
}

type splitFault struct {
	Database   string `json:"database"`
	Container  string `json:"container"`
	Range      string `json:"range"`
	DurationMS int    `json:"durationMs,omitempty"` // 0 = at once
}

type mergeFault struct {
	Database  string    `json:"database"`
	Container string    `json:"container"`
	Ranges    [2]string `json:"ranges"`
}

type regionFault struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

type regionName struct {
	Name string `json:"name"`
}

// faults are those that are scripted now.
type faults struct {
	account   *cosmosfake.Server
	namespace *servicebusfake.Server
	regions   []string

	mu        sync.Mutex
	cosmos    []*cosmosFault // the newest first
	bus       []*busFault
	splitting []*time.Timer
}

func newFaults(account *cosmosfake.Server, namespace *servicebusfake.Server, regions []string) *faults {
	f := &faults{account: account, namespace: namespace, regions: regions}
	account.Control(f.ofAccount)
	namespace.Control(f.ofNamespace)
	return f
}

func (f *faults) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, f.list()) })
	mux.HandleFunc("POST /faults", f.post)
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		if err := f.reset(); err != nil {
			answer(w, http.StatusConflict, map[string]string{"error": err.Error()})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /faults/schema", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/schema+json")
		_, _ = w.Write(FaultsSchema)
	})
}

func (f *faults) post(w http.ResponseWriter, r *http.Request) {
	scripted, err := decodeFault(http.MaxBytesReader(w, r.Body, largestFault))
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"error": err.Error() + "; GET /faults/schema has what is allowed"})
		return
	}
	done, err := f.add(scripted)
	if err != nil {
		answer(w, http.StatusConflict, map[string]string{"error": err.Error()})
		return
	}
	answer(w, http.StatusOK, done)
}

// decodeFault decodes one fault, strictly by the schema.
func decodeFault(body io.Reader) (f fault, err error) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("it is no fault: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return f, errors.New("there is more than one fault")
	}
	set := 0
	for _, there := range []bool{f.Cosmos != nil, f.ServiceBus != nil, f.Split != nil, f.Merge != nil, f.Region != nil, f.Failover != nil} {
		if there {
			set++
		}
	}
	if set != 1 {
		return f, errors.New("a fault is one of cosmos, serviceBus, split, merge, region, failover")
	}
	switch {
	case f.Cosmos != nil:
		return f, f.Cosmos.check()
	case f.ServiceBus != nil:
		return f, f.ServiceBus.check()
	case f.Split != nil && (f.Split.Database == "" || f.Split.Container == "" || f.Split.Range == "" || f.Split.DurationMS < 0):
		return f, errors.New("split needs database, container and range")
	case f.Merge != nil && (f.Merge.Database == "" || f.Merge.Container == "" || slices.Contains(f.Merge.Ranges[:], "")):
		return f, errors.New("merge needs database, container and two ranges")
	case f.Region != nil && (f.Region.Name == "" || stateOf(f.Region.State) < 0):
		return f, errors.New("region needs a name, and a state: online, unavailable, refusing or hanging")
	case f.Failover != nil && f.Failover.Name == "":
		return f, errors.New("failover needs the name of a region")
	}
	return f, nil
}

func (t *times) check() error {
	if t.Times != nil && *t.Times < 0 {
		return errors.New("times is 0, which is until the reset, or more")
	}
	return nil
}

// met counts a request that meets the fault, and reports whether it was the last one.
func (t *times) met() (over bool) {
	switch {
	case t.Times == nil:
		return true
	case *t.Times == 0:
		return false
	}
	*t.Times--
	return *t.Times == 0
}

func (c *cosmosFault) check() error {
	switch {
	case !slices.Contains(cosmosfake.Kinds(), c.Kind):
		return fmt.Errorf("%q is no kind of request", c.Kind)
	case c.Status != 0 && (c.Status < 200 || c.Status > 599) || c.Substatus < 0 || c.DelayMS < 0:
		return errors.New("status is 200 to 599, substatus and delayMs are 0 or more")
	case c.DelayMS == 0 && c.Status == 0 && !c.Break && !c.CutShort && !c.EmptyPage:
		return errors.New("it changes nothing: set delayMs, status, break, cutShort or emptyPage")
	}
	return c.times.check()
}

func (b *busFault) check() error {
	switch {
	case !slices.Contains(servicebusfake.Ops(), b.Operation):
		return fmt.Errorf("%q is no kind of operation", b.Operation)
	case b.Status != 0 && (b.Status < 200 || b.Status > 599) || b.DelayMS < 0:
		return errors.New("status is 200 to 599, delayMs is 0 or more")
	case b.DelayMS == 0 && b.Condition == "" && !b.Drop && !b.LoseReply:
		return errors.New("it changes nothing: set delayMs, condition, drop or loseReply")
	}
	return b.times.check()
}

// states are the names of what clients meet in a region, in the order of cosmosfake.RegionState.
var states = []string{"online", "unavailable", "refusing", "hanging"}

// stateOf returns a negative number for an unknown name.
func stateOf(name string) cosmosfake.RegionState {
	return cosmosfake.RegionState(slices.Index(states, name))
}

// add scripts a fault, or does at once what it asks for. It returns the body of the answer.
func (f *faults) add(s fault) (any, error) {
	switch {
	case s.Split != nil:
		return f.split(*s.Split)
	case s.Merge != nil:
		child, err := f.account.Merge(s.Merge.Database, s.Merge.Container, s.Merge.Ranges[0], s.Merge.Ranges[1])
		return map[string]any{"ranges": []string{child}}, err
	case s.Region != nil:
		i, err := f.region(s.Region.Name)
		if err != nil {
			return nil, err
		}
		return struct{}{}, f.account.SetRegion(i, stateOf(s.Region.State))
	case s.Failover != nil:
		i, err := f.region(s.Failover.Name)
		if err == nil {
			f.account.Failover(i)
		}
		return struct{}{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Cosmos != nil {
		f.cosmos = append([]*cosmosFault{s.Cosmos}, f.cosmos...)
	} else {
		f.bus = append([]*busFault{s.ServiceBus}, f.bus...)
	}
	return struct{}{}, nil
}

func (f *faults) region(name string) (int, error) {
	if i := slices.Index(f.regions, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("there is no region %q; there are %s", name, strings.Join(f.regions, ", "))
}

// split answers with the new ranges, if it is done at once.
func (f *faults) split(s splitFault) (any, error) {
	finish, err := f.account.StartSplit(s.Database, s.Container, s.Range)
	if err != nil {
		return nil, err
	}
	if s.DurationMS == 0 {
		return map[string]any{"ranges": finish()}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.splitting = append(f.splitting, time.AfterFunc(time.Duration(s.DurationMS)*time.Millisecond, func() { finish() }))
	return map[string]any{"ranges": []string{}}, nil
}

// reset removes what is scripted, and has every region answer again. Ranges stay as they are.
func (f *faults) reset() error {
	f.mu.Lock()
	f.cosmos, f.bus = nil, nil
	f.mu.Unlock()
	var errs []error
	for i := range f.regions {
		errs = append(errs, f.account.SetRegion(i, cosmosfake.Online))
	}
	f.account.Failover(0)
	return errors.Join(errs...)
}

// stop ends what would happen later.
func (f *faults) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.splitting {
		t.Stop()
	}
}

// list returns the scripted faults that requests still meet.
func (f *faults) list() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := []fault{}
	for _, c := range f.cosmos {
		again := *c
		again.times = c.copy()
		all = append(all, fault{Cosmos: &again})
	}
	for _, b := range f.bus {
		again := *b
		again.times = b.copy()
		all = append(all, fault{ServiceBus: &again})
	}
	return map[string]any{"faults": all}
}

func (t *times) copy() times {
	left := 1
	if t.Times != nil {
		left = *t.Times
	}
	return times{&left}
}

func (f *faults) ofAccount(r *cosmosfake.Request) *cosmosfake.Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, c := range f.cosmos {
		if c.Kind != r.Kind || !matches(c.Region, r.Region) || !matches(c.Database, r.Database) ||
			!matches(c.Container, r.Container) || !matches(c.Range, r.RangeID) {
			continue
		}
		if c.met() {
			f.cosmos = slices.Delete(f.cosmos, i, i+1)
		}
		a := &cosmosfake.Answer{
			Delay: time.Duration(c.DelayMS) * time.Millisecond, Break: c.Break, Status: c.Status, Substatus: c.Substatus,
			Message: c.Message, Body: c.Body, CutShort: c.CutShort, EmptyPage: c.EmptyPage, Header: http.Header{},
		}
		for name, value := range c.Headers {
			a.Header.Set(name, value)
		}
		return a
	}
	return nil
}

func (f *faults) ofNamespace(r *servicebusfake.Request) *servicebusfake.Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, b := range f.bus {
		if b.Operation != r.Op || b.Entity != "" && !strings.EqualFold(b.Entity, r.Entity) {
			continue
		}
		if b.met() {
			f.bus = slices.Delete(f.bus, i, i+1)
		}
		// Keep: how often it is met is counted here.
		return &servicebusfake.Answer{
			Delay: time.Duration(b.DelayMS) * time.Millisecond, Condition: b.Condition, Description: b.Description, Status: b.Status,
			Drop: b.Drop, LoseReply: b.LoseReply, Keep: true,
		}
	}
	return nil
}

// matches reports whether a request has what a fault wants; "" is anything.
func matches(wanted, got string) bool { return wanted == "" || wanted == got }
