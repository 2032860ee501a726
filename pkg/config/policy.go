package config

import (
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// maxThreshold, in transactions, keeps the threshold times the number of partitions within 64 bits.
const maxThreshold = 1_000_000_000_000

// policy reads the fields of a processor that say how it is scaled, with the defaults of
// docs/configure.md.
func (d *documentReader) policy(o *object) scaling.Policy {
	// The rates tell when fewer replicas do, so that a window is needed for less.
	sizing := choice(o, "sizing", scaling.SizingAuto, scaling.SizingAuto, scaling.SizingThreshold)
	auto, catchUp, window := sizing == scaling.SizingAuto, 90*time.Second, 225
	if !auto {
		catchUp, window = 0, 300
	}
	p := scaling.Policy{
		Threshold:                integer[int64](o, "changeFeedLagThreshold", 100, 1, maxThreshold),
		Activation:               integer[int64](o, "activationChangeFeedLagThreshold", 0, 0, maxThreshold),
		LimitToPartitionsWithLag: o.boolean("limitToPartitionsWithLag"),
		EvenPartitions:           o.boolean("evenPartitions"),
		MaxLeasesPerReplica:      integer(o, "maxLeasesPerReplica", 0, 1, maxReplicas),
		ExcludeStalled:           o.booleanOr("excludeStalled", auto),
		MaxChangeAge:             o.duration("maxChangeAge", 0, 0),
		Sizing:                   sizing,
		CatchUpWithin:            o.duration("catchUpWithin", catchUp, 0),
		Cooldown:                 o.duration("cooldownPeriod", 300*time.Second, 0),
		Health: health.Policy{
			StalledAfter:    o.duration("stalledAfter", 5*time.Minute, time.Second),
			StalledPolls:    integer(o, "stalledAfterPolls", 2, 2, 1000),
			LeaseExpiration: o.duration("leaseExpiration", 60*time.Second, time.Second),
			Retention:       o.duration("retention", 0, time.Second),
		},
		Behavior: d.behavior(o.get("behavior"), window),
		Fallback: d.fallback(o.get("fallback")),
		Paused:   o.boolean("paused"),
	}
	for _, item := range o.list("schedules") {
		p.Schedules = append(p.Schedules, d.floor(item))
	}
	p.MinReplicas, p.MaxReplicas = replicaBounds(o)
	if o.sound("changeFeedLagThreshold", "activationChangeFeedLagThreshold") && p.Activation >= p.Threshold {
		o.clash(fmt.Sprintf("activationChangeFeedLagThreshold is %d and changeFeedLagThreshold %d; allowed is an activation below the threshold", p.Activation, p.Threshold),
			"activationChangeFeedLagThreshold", "changeFeedLagThreshold")
	}
	return p
}

// behavior reads the HPA's field of that name. The defaults are feedscale's own: scale-up at once
// and without a limit, scale-down after a window of so many seconds (docs/decisions/0011-default-policy.md).
func (d *documentReader) behavior(n *node, window int) scaling.Behavior {
	o := d.object(n)
	b := scaling.Behavior{
		ScaleUp:   d.rules(o.get("scaleUp"), 0),
		ScaleDown: d.rules(o.get("scaleDown"), window),
	}
	o.close()
	return b
}

// rules reads one direction, with the bounds that the HPA has. window is the default of its
// stabilization window, in seconds.
func (d *documentReader) rules(n *node, window int) scaling.Rules {
	o := d.object(n)
	r := scaling.Rules{
		StabilizationWindow: time.Duration(integer(o, "stabilizationWindowSeconds", window, 0, 3600)) * time.Second,
		SelectPolicy:        choice(o, "selectPolicy", scaling.SelectMax, scaling.SelectMax, scaling.SelectMin, scaling.SelectDisabled),
		Tolerance:           o.fraction("tolerance"),
	}
	for _, item := range o.list("policies") {
		r.Policies = append(r.Policies, d.ratePolicy(item))
	}
	o.close()
	return r
}

func (d *documentReader) ratePolicy(n *node) scaling.RatePolicy {
	o := d.item(n, "an object with type, value and periodSeconds")
	o.require("type", "Pods or Percent")
	o.require("value", "a whole number, 1 or more")
	o.require("periodSeconds", "a whole number from 1 to 1800")
	p := scaling.RatePolicy{
		Type:   choice(o, "type", scaling.RatePods, scaling.RatePods, scaling.RatePercent),
		Value:  integer(o, "value", 1, 1, maxReplicas),
		Period: time.Duration(integer(o, "periodSeconds", 1, 1, 1800)) * time.Second,
	}
	o.close()
	return p
}

// fallback reads KEDA's field of that name.
func (d *documentReader) fallback(n *node) scaling.Fallback {
	o := d.object(n)
	f := scaling.Fallback{
		FailureThreshold: integer(o, "failureThreshold", 3, 0, maxReplicas),
		Behavior: choice(o, "behavior", scaling.FallbackMax, scaling.FallbackMax, scaling.FallbackStatic,
			scaling.FallbackCurrent, scaling.FallbackCurrentIfHigher, scaling.FallbackCurrentIfLower),
		Replicas: integer(o, "replicas", 0, 0, maxReplicas),
	}
	o.close()
	switch f.Behavior {
	case scaling.FallbackStatic, scaling.FallbackCurrentIfHigher, scaling.FallbackCurrentIfLower:
		if o.sound("behavior", "replicas") && o.get("replicas") == nil {
			o.clash(fmt.Sprintf("%s needs replicas; allowed is a whole number, 0 or more, in replicas", f.Behavior), "behavior")
		}
	default:
		f.Replicas = 0 // ignored, as in KEDA
	}
	return f
}

// floor reads an entry of schedules, which has the fields of KEDA's cron trigger.
func (d *documentReader) floor(n *node) scaling.Schedule {
	o := d.item(n, "an object with timezone, start, end and desiredReplicas")
	o.require("timezone", "an IANA time zone such as UTC or Europe/London")
	o.require("start", "a cron expression of five fields")
	o.require("end", "a cron expression of five fields")
	o.require("desiredReplicas", "a whole number, 1 or more")
	s := scaling.Schedule{DesiredReplicas: integer(o, "desiredReplicas", 1, 1, maxReplicas), Location: time.UTC}
	o.text("timezone", "", func(text string) error {
		location, err := time.LoadLocation(text)
		if err != nil || text == "" || text == "Local" {
			return fmt.Errorf("%s is no time zone; allowed are IANA names such as UTC or Europe/London", yamltree.Quote(text))
		}
		s.Location = location
		return nil
	})
	start, end := o.cron("start", parseKEDACron), o.cron("end", parseKEDACron)
	s.Start, s.End = start, end
	if o.sound("start", "end") && start.spec == end.spec {
		o.clash("start and end are the same; allowed are two that differ", "end")
	}
	o.close()
	return s
}

// item begins to read an object in a list, which must not be empty.
func (r *reader) item(n *node, form string) *object {
	if n.isNull() {
		r.mistake(n, "is empty; allowed is "+form)
	}
	return r.object(n)
}
