package changefeed_test

import (
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

func TestSessionLSN(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, token string
		want        int64
		ok          bool
	}{
		{"simple token", "0:123", 123, true},
		{"vector token", "0:-1#123", 123, true},
		{"vector token with regions", "0:-1#123#1=100#2=101", 123, true},
		{"vector token with named regions", "0:-1#123#Region=West US", 123, true},
		{"version that is not -1", "12:5#9876543210", 9876543210, true},
		{"no colon: the whole is the token", "123", 123, true},
		{"no colon, but a vector", "-1#123", 123, true},
		{"only the first colon counts", "0:1:2", 0, false},
		{"blanks around", "0: 123 ", 123, true},
		{"sign", "0:+123", 123, true},
		{"negative", "0:-5", -5, true},
		{"thousands", "0:1,234", 0, false},
		{"fraction", "0:123.5", 0, false},
		{"empty", "", 0, false},
		{"nothing behind the colon", "0:", 0, false},
		{"nothing behind the hash", "0:-1#", 0, false},
		{"no number", "0:abc", 0, false},
		{"beyond 64 bits", "0:99999999999999999999", 0, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got, ok := changefeed.SessionLSN(c.token); got != c.want || ok != c.ok {
				t.Errorf("SessionLSN(%q) = %d, %v; want %d, %v", c.token, got, ok, c.want, c.ok)
			}
		})
	}
}

func TestContinuationLSN(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, etag string
		want       int64
		ok         bool
	}{
		{"quoted decimal", `"511"`, 511, true},
		{"bare decimal", "511", 511, true},
		{"weak", `W/"511"`, 511, true},
		{"opaque", `"abc"`, 0, false},
		{"never checkpointed", "", 0, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got, ok := changefeed.ContinuationLSN(c.etag); got != c.want || ok != c.ok {
				t.Errorf("ContinuationLSN(%q) = %d, %v; want %d, %v", c.etag, got, ok, c.want, c.ok)
			}
		})
	}
}
