package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// Fault is something that can be switched on and off in the world.
type Fault struct {
	Name  string `json:"name"`  // one word in lower case
	Label string `json:"label"` // what switching it does now, such as "hang the handler of orders"
	On    bool   `json:"on"`
}

// The names of the faults.
const (
	faultSplit    = "split"
	faultHang     = "hang"
	faultThrow    = "throw"
	faultThrottle = "throttle"
	faultBroker   = "broker"
	faultGap      = "gap"
	faultAhead    = "ahead"
)

// script has the texts about a fault, while it is off and while it is on.
type script struct {
	name     string
	do, undo string // labels
	on, off  string // what to watch after it was switched on or off
}

var scripts = []script{
	{
		faultSplit, "split a partition of orders", "merge the partition of orders again",
		"orders: splitting, then one partition more. Its lag is known all the while.",
		"orders: the parts are one range again, which two leases go on reading.",
	},
	{
		faultHang, "hang the handler of orders", "free the handler of orders",
		"orders: stalled within 15 s. Its leases are renewed, but no position moves: LAG grows, and more replicas would not help.",
		"orders: LAG drains; after that the replicas are fewer again.",
	},
	{
		faultThrow, "break the handler of orders: it throws", "mend the handler of orders",
		"orders: stalled within 15 s. Its leases are given back and taken again, and no position moves.",
		"orders: LAG drains; after that the replicas are fewer again.",
	},
	{
		faultThrottle, "throttle the account: it answers 429", "end the throttling of the account",
		"all: unknown, and LAG is ?, which is not zero. REPLICAS holds and, behind three failed polls, falls back to what the partitions known last would need.",
		"all: known again within seconds, with what was written meanwhile.",
	},
	{
		faultBroker, "stop the broker", "start the broker again",
		"payments: at its next burst REPLICAS is decided, and RUNNING does not follow: the event waits beside the state.",
		"payments: the newest event of each processor is published, and RUNNING follows.",
	},
	{
		faultGap, "delete a lease of payments", "put the lease of payments back",
		"payments: uncovered. No replica reads the keys of that lease, one counts for all of them, and one replica stays.",
		"payments: covered again, from where the lease stood.",
	},
	{
		faultAhead, "restore the leases of audit from elsewhere", "put the leases of audit back",
		"audit: its feeds have not come to where its leases stand, so that nothing seems to be pending. After a minute: ahead, and LAG is ?, which is not zero.",
		"audit: stalled again, from where its leases stood.",
	},
}

// ErrNoFault is returned for a name that no fault has.
var ErrNoFault = errors.New("there is no such fault")

// faults are the faults that are on.
type faults struct {
	throws, throttles, brokerDown atomic.Bool

	mu    sync.Mutex
	hangs chan struct{}    // closed when the handlers are freed; nil if they do not hang
	lost  []map[string]any // the deleted lease; nil if there is none
	was   []map[string]any // the leases before they were restored from elsewhere; nil if none were
	watch string
}

// Faults returns all faults, always in the same order.
func (w *World) Faults() []Fault {
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	all := make([]Fault, len(scripts))
	for i, s := range scripts {
		all[i] = Fault{Name: s.name, Label: s.do, On: w.isOn(s.name)}
		if all[i].On {
			all[i].Label = s.undo
		}
	}
	return all
}

// Watch says what to look at since a fault was last switched; "" if none ever was.
func (w *World) Watch() string {
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	return w.faults.watch
}

// Switch switches a fault on or off. It does nothing if the fault is in that state. The error is
// ErrNoFault if no fault has the name.
func (w *World) Switch(name string, on bool) error {
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	at := slices.IndexFunc(scripts, func(s script) bool { return s.name == name })
	if at < 0 {
		return fmt.Errorf("%w: %q", ErrNoFault, name)
	}
	s := scripts[at]
	label, watch := s.undo, s.off
	if on {
		label, watch = s.do, s.on
	}
	w.faults.watch = watch
	if w.isOn(name) != on {
		w.set(name, on)
		w.journal.note("you: %s", label)
	}
	return nil
}

// isOn reports whether a fault is on. The caller of isOn and set holds the lock of the faults.
func (w *World) isOn(name string) bool {
	switch name {
	case faultSplit:
		return w.reshaper.split()
	case faultHang:
		return w.faults.hangs != nil
	case faultThrow:
		return w.faults.throws.Load()
	case faultThrottle:
		return w.faults.throttles.Load()
	case faultGap:
		return w.faults.lost != nil
	case faultAhead:
		return w.faults.was != nil
	default:
		return w.faults.brokerDown.Load()
	}
}

func (w *World) set(name string, on bool) {
	switch name {
	case faultSplit:
		w.reshaper.ask(on)
	case faultHang:
		if on {
			w.faults.hangs = make(chan struct{})
		} else {
			close(w.faults.hangs)
			w.faults.hangs = nil
		}
	case faultThrow:
		w.faults.throws.Store(on)
	case faultThrottle:
		w.faults.throttles.Store(on)
	case faultGap:
		lose := func() ([]map[string]any, error) {
			return w.loseLeases(leasefake.Processor{Name: "payment-settlement", Container: "payments"}, "0")
		}
		w.setLeases(on, &w.faults.lost, lose)
	case faultAhead:
		w.setLeases(on, &w.faults.was, w.replaceLeases)
	default:
		w.faults.brokerDown.Store(on)
	}
}

// setLeases takes leases away, or restores those that were taken.
func (w *World) setLeases(on bool, taken *[]map[string]any, take func() ([]map[string]any, error)) {
	var err error
	if on {
		*taken, err = take()
	} else {
		*taken, err = w.restoreLeases(*taken)
	}
	if err != nil {
		w.journal.note("%v", err)
	}
}

// strike makes a handler throw, or hang until it is freed or its host is killed, while such a fault
// is on.
func (f *faults) strike(life context.Context) error {
	if f.throws.Load() {
		return errors.New("the handler fails, as it was told to")
	}
	f.mu.Lock()
	freed := f.hangs
	f.mu.Unlock()
	if freed == nil {
		return nil
	}
	return hang(life, freed)
}

// hang waits until the handlers are freed or a context ends.
func hang(ctx context.Context, freed <-chan struct{}) error {
	select {
	case <-freed:
		return nil
	case <-ctx.Done():
		return errors.New("the lease is lost, or the host ends")
	}
}

// throttle is a control function of the account. While the fault is on, every request for documents
// is refused as if its container had no request units left.
func (f *faults) throttle(r *cosmosfake.Request) *cosmosfake.Answer {
	if !f.throttles.Load() {
		return nil
	}
	switch r.Kind {
	case cosmosfake.ReadChangeFeed, cosmosfake.QueryDocuments, cosmosfake.ReadDocument, cosmosfake.CreateDocument, cosmosfake.UpsertDocument, cosmosfake.ReplaceDocument, cosmosfake.DeleteDocument:
		return &cosmosfake.Answer{
			Status: http.StatusTooManyRequests, Substatus: 3200, Header: http.Header{"X-Ms-Retry-After-Ms": {"100"}},
			Message: "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429",
		}
	default:
		return nil
	}
}

// cut is a control function of the namespace: while the broker is down, every connection breaks.
func (f *faults) cut(*servicebusfake.Request) *servicebusfake.Answer {
	if !f.brokerDown.Load() {
		return nil
	}
	return &servicebusfake.Answer{Drop: true, Keep: true}
}
