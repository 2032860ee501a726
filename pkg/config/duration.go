package config

import (
	"fmt"
	"strings"
	"time"
)

// durationForm tells what a duration looks like.
const durationForm = "a duration such as 90s, 5m or 1h30m"

// maxDuration bounds every duration of the processors file. It is a year, so
// that arithmetic on durations never overflows.
const maxDuration = 365 * 24 * time.Hour

// parseDuration reads Go's form of a duration, from 0 upwards and without the
// units below a millisecond, which mean nothing at the pace of a poll.
func parseDuration(text string) (time.Duration, error) {
	if strings.HasPrefix(text, "-") {
		return 0, fmt.Errorf("%s is negative; allowed is %s", shown(text), durationForm)
	}
	d, err := time.ParseDuration(text)
	foreign := func(r rune) bool { return !strings.ContainsRune("0123456789.hms", r) }
	if err != nil || strings.ContainsFunc(text, foreign) {
		return 0, fmt.Errorf("%s is no duration; allowed is %s", shown(text), durationForm)
	}
	return d, nil
}
