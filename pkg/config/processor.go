package config

import (
	"cmp"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/crontab"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// Processor is an entry of the processors file (docs/configure.md), with its defaults.
type Processor struct {
	Name             string // unique among processors and groups
	Group            string // name of the group that it runs in; "" = none
	Connection       CosmosConnection
	DatabaseID       string
	ContainerID      string
	LeaseConnection  CosmosConnection
	LeaseDatabaseID  string
	LeaseContainerID string
	ProcessorName    string   // as given to the SDK; "" is the default of Functions triggers and of Java
	NamesInUse       []string // the ProcessorNames of all entries for the same container and lease container
	AccountHost      string   // host of the endpoint that the application uses for the monitored account, without a port
	StartFrom        changefeed.StartFrom
	LeaseFormat      changefeed.Family // whose leases count; "" = whatever is found
	Schedule         crontab.Schedule  // zero = every tick
	IdleSchedule     crontab.Schedule  // while the processor is idle; zero = Schedule
	Policy           scaling.Policy
	Throughput       Throughput
	SignalQueue      string            // queue that holds a message for each replica that is wanted; "" = none
	Target           map[string]string // labels that every scale event carries; never nil
}

// Group is a set of processors that run in one deployment, which gets the highest count that any of
// them asks for (docs/configure.md, Groups).
type Group struct {
	Name        string // unique among groups and processors
	Policy      scaling.GroupPolicy
	SignalQueue string            // queue that holds a message for each replica that is wanted; "" = none
	Target      map[string]string // labels that every scale event of the group carries; never nil
}

// ThroughputMode says what is done about the throughput that a processor's replicas need.
type ThroughputMode string

// The modes.
const (
	ThroughputOff       ThroughputMode = "off"
	ThroughputRecommend ThroughputMode = "recommend" // shown and published
	ThroughputApply     ThroughputMode = "apply"     // provisioned
)

// Throughput is the field of a processor that names containers whose request units follow its
// replicas (docs/throughput.md).
type Throughput struct {
	Mode           ThroughputMode
	Containers     []ThroughputContainer // none if the mode is off
	ScaleDownAfter time.Duration
}

// ThroughputContainer is one container, or a database whose containers share its throughput.
type ThroughputContainer struct {
	Connection   CosmosConnection
	DatabaseID   string
	ContainerID  string // "" = the database itself
	Min          int    // request units a second; 0 = what is found before the first change
	Max          int
	RUPerReplica int // request units a second that one replica uses; 0 = what is measured
}

// The fields of a processor, a group and a policy as a document has them. encoding/json finds each
// by its name, in any case. Those with the same name and type in the value that is made of them
// come with that.
type (
	processorFields struct {
		Processor
		Connection, LeaseConnection, StartFrom, Schedule, IdleSchedule string
		Throughput                                                     throughputFields
		policyFields
	}
	groupFields struct {
		Group
		MinReplicaCount int
		MaxReplicaCount *int
	}
	policyFields struct {
		scaling.Policy
		ChangeFeedLagThreshold, ActivationChangeFeedLagThreshold               int64
		StalledAfterPolls, MinReplicaCount                                     int
		MaxReplicaCount                                                        *int
		MaxChangeAge, CooldownPeriod, Retention, StalledAfter, LeaseExpiration duration
		CatchUpWithin                                                          *duration
		ExcludeStalled                                                         *bool
		Behavior                                                               struct{ ScaleUp, ScaleDown ruleFields }
		Fallback                                                               struct {
			scaling.Fallback
			Replicas *int
		}
		Schedules []struct {
			scaling.Schedule
			Timezone, Start, End string
		}
	}
	ruleFields struct {
		scaling.Rules
		StabilizationWindowSeconds *int
		Policies                   []struct {
			scaling.RatePolicy
			PeriodSeconds int
		}
	}
	throughputFields struct {
		Throughput
		ScaleDownAfter duration
		Containers     []struct {
			ThroughputContainer
			Container, Database, Connection string
		}
	}
)

// policy returns the policy of the fields. Two defaults depend on sizing
// (docs/decisions/0011-default-policy.md).
func (f policyFields) policy() scaling.Policy {
	auto := f.Sizing == scaling.SizingAuto
	catchUp := duration(0)
	if auto {
		catchUp = duration(90 * time.Second)
	}
	p := f.Policy
	p.Threshold, p.Activation = f.ChangeFeedLagThreshold, f.ActivationChangeFeedLagThreshold
	p.MinReplicas, p.MaxReplicas = f.MinReplicaCount, f.MaxReplicaCount
	p.ExcludeStalled = *cmp.Or(f.ExcludeStalled, &auto)
	p.CatchUpWithin = time.Duration(*cmp.Or(f.CatchUpWithin, &catchUp))
	p.MaxChangeAge, p.Cooldown = time.Duration(f.MaxChangeAge), time.Duration(f.CooldownPeriod)
	p.Health = health.Policy{
		StalledAfter: time.Duration(f.StalledAfter), StalledPolls: f.StalledAfterPolls,
		LeaseExpiration: time.Duration(f.LeaseExpiration), Retention: time.Duration(f.Retention),
	}
	p.Behavior = scaling.Behavior{ScaleUp: f.Behavior.ScaleUp.rules(0), ScaleDown: f.Behavior.ScaleDown.rules(300)}
	p.Fallback = f.Fallback.Fallback
	if f.Fallback.Replicas != nil && needsReplicas(p.Fallback.Behavior) { // else ignored, as in KEDA
		p.Fallback.Replicas = *f.Fallback.Replicas
	}
	for _, w := range f.Schedules { // the schema checked each
		s := w.Schedule
		s.Location, _ = parseTimeZone(w.Timezone)
		s.Start, _ = crontab.ParseKEDA(w.Start)
		s.End, _ = crontab.ParseKEDA(w.End)
		p.Schedules = append(p.Schedules, s)
	}
	return p
}

func needsReplicas(b scaling.FallbackBehavior) bool {
	return b == scaling.FallbackStatic || b == scaling.FallbackCurrentIfHigher || b == scaling.FallbackCurrentIfLower
}

// rules returns one direction of behavior; window is its default stabilization window, in seconds.
func (f ruleFields) rules(window int) scaling.Rules {
	r := f.Rules
	r.StabilizationWindow = time.Duration(*cmp.Or(f.StabilizationWindowSeconds, &window)) * time.Second
	for _, p := range f.Policies {
		p.Period = time.Duration(p.PeriodSeconds) * time.Second
		r.Policies = append(r.Policies, p.RatePolicy)
	}
	return r
}

// duration is a duration in Go's form, or in whole seconds as KEDA's fields are.
type duration time.Duration

// UnmarshalJSON reads either form.
func (d *duration) UnmarshalJSON(text []byte) error {
	unquoted := strings.Trim(string(text), `"`)
	parsed, err := parseDuration(unquoted)
	if err != nil {
		parsed, err = parseDuration(unquoted + "s")
	}
	*d = duration(parsed)
	return err
}
