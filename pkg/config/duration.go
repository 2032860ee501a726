package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// durationForm says in mistakes what a duration looks like.
const durationForm = "a duration such as 90s, 5m or 1h30m"

// maxDuration is the greatest duration in the processors file: a year, so that arithmetic on
// durations does not overflow.
const maxDuration = 365 * 24 * time.Hour

// parseDuration reads a duration of 0 or more in Go's form, in the units h, m, s and ms. The finer
// ones make no sense for polls.
func parseDuration(text string) (time.Duration, error) {
	if strings.HasPrefix(text, "-") {
		return 0, fmt.Errorf("%s is negative; allowed is %s", yamltree.Quote(text), durationForm)
	}
	d, err := time.ParseDuration(text)
	foreign := func(r rune) bool { return !strings.ContainsRune("0123456789.hms", r) }
	if err != nil || strings.ContainsFunc(text, foreign) {
		return 0, fmt.Errorf("%s is no duration; allowed is %s", yamltree.Quote(text), durationForm)
	}
	return d, nil
}
