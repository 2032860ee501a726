package poller

import (
	"testing"
	"time"
)

// TestAClockThatIsWrongIsCorrected has a machine's clock that is wrong from the start, or jumps, and accounts
// whose clocks move, disagree, or give one odd answer.
func TestAClockThatIsWrongIsCorrected(t *testing.T) {
	t.Parallel()
	const poll, quarter = 15 * time.Second, 15 * time.Minute
	for _, c := range []struct {
		rule        string
		wrong, jump time.Duration // of the machine, at the start and after five polls
		service     time.Duration // by which the accounts' clocks move then
		odd         time.Duration // by which they are wrong in the sixth poll alone
		other       time.Duration // by which another account differs
		off         time.Duration // how wrong the corrected time is in the end
		says        string        // "" = nothing
	}{
		{rule: "all is well"},
		{rule: "the machine is wrong from the start", wrong: quarter, says: "differs by more than a minute from that of Cosmos DB"},
		{rule: "it jumps ahead", jump: quarter, says: "differs by more than a minute from that of Cosmos DB"},
		{rule: "it jumps back", jump: -quarter, says: "differs by more than a minute from that of Cosmos DB"},
		{rule: "it is put right", wrong: quarter, jump: -quarter},
		{rule: "it is a little wrong", wrong: 30 * time.Second, off: 30 * time.Second},
		{rule: "one answer is odd", odd: quarter},
		{rule: "the service's clock moves: it is followed", service: quarter, off: quarter, says: "differs by more than a minute from that of Cosmos DB"},
		{rule: "two accounts disagree: the one nearer to the machine counts", wrong: quarter, other: -quarter, says: "differs by more than a minute from that of Cosmos DB"},
	} {
		right, passed, machine, service := time.Unix(1_800_000_000, 0), time.Duration(0), c.wrong, time.Duration(0)
		clock := NewClock(func() time.Time { return right.Add(passed + machine) })
		before := clock.Now()
		for i := range 12 {
			odd := time.Duration(0)
			if i == 5 {
				machine, service, odd = machine+c.jump, c.service, c.odd
			}
			passed += poll
			now := clock.Now()
			// What is wrong from the start is corrected after the first poll, and a jump after two.
			settled := i > 1 && (i < 5 || i > 7 || c.jump == 0 && c.service == 0)
			if moved := now.Sub(before); settled && moved != poll && c.other == 0 {
				t.Errorf("%s: poll %d is %s after the one before", c.rule, i, moved)
			}
			before = now
			offsets := []time.Duration{service + odd - machine}
			if c.other != 0 {
				offsets = append(offsets, service-machine+c.other)
			}
			clock.look(offsets)
		}
		if off := before.Sub(right.Add(passed)); off != c.off {
			t.Errorf("%s: it is wrong by %s, want %s", c.rule, off, c.off)
		}
		says := ""
		for _, cause := range clock.causes() {
			says = cause.Says
		}
		if says != c.says {
			t.Errorf("%s: it says %q, want %q", c.rule, says, c.says)
		}
	}
}
