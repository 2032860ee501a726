package config

import (
	_ "embed" // for the schema
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/crontab"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// SchemaURL is where the schema is published, for the first line of a processors file anywhere.
const SchemaURL = "https://raw.githubusercontent.com/feedscale/feedscale/main/pkg/config/processors.schema.json"

//go:embed processors.schema.json
var schemaText string

// Schema returns the JSON Schema (2020-12) of the processors file: the only source of its fields.
func Schema() string { return schemaText }

var (
	processorsForm = sync.OnceValue(func() *yamltree.Form { return yamltree.NewForm(schemaText, "", formats, unknownField) })
	policiesForm   = sync.OnceValue(func() *yamltree.Form { return yamltree.NewForm(schemaText, "policiesFile", formats, unknownField) })
)

// formats are those that JSON Schema does not have. Each says what is wrong, and what is allowed if
// the schema does not say it.
var formats = map[string]func(string) error{
	"feedscale-duration":          func(text string) error { return checkDuration(text, 0) },
	"feedscale-positive-duration": func(text string) error { return checkDuration(text, time.Second) },
	"feedscale-start-from":        func(text string) error { _, err := parseStartFrom(text); return err },
	"feedscale-ncrontab":          func(text string) error { _, err := crontab.ParseNCRONTAB(text); return err },
	"feedscale-cron":              func(text string) error { _, err := crontab.ParseKEDA(text); return err },
	"feedscale-time-zone":         func(text string) error { _, err := parseTimeZone(text); return err },
}

// maxDuration is the greatest duration: a year, so that arithmetic on durations does not overflow.
const maxDuration = 365 * 24 * time.Hour

// parseDuration reads a duration of 0 or more in Go's form, in the units h, m, s and ms.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	foreign := func(r rune) bool { return !strings.ContainsRune("0123456789.hms", r) }
	if err != nil || strings.ContainsFunc(text, foreign) {
		return 0, fmt.Errorf("%s is no duration", yamltree.Quote(text))
	}
	return d, nil
}

func checkDuration(text string, low time.Duration) error {
	d, err := parseDuration(text)
	if err == nil && !within(d, low, maxDuration) {
		return fmt.Errorf("%s is out of range", text)
	}
	return err
}

// parseStartFrom reads "now", "beginning" or a time; as for the SDKs, the year 1 is the beginning.
func parseStartFrom(text string) (changefeed.StartFrom, error) {
	switch text {
	case "", "now":
		return changefeed.StartFrom{}, nil
	case "beginning":
		return changefeed.StartFrom{Beginning: true}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	from := changefeed.StartAt(at)
	if err != nil || !from.Beginning && from.Time.Year() < 1970 {
		return changefeed.StartFrom{}, fmt.Errorf("%s is no start", yamltree.Quote(text))
	}
	return from, nil
}

func parseTimeZone(text string) (*time.Location, error) {
	location, err := time.LoadLocation(text)
	if err != nil || text == "" || text == "Local" {
		return nil, errors.New(yamltree.Quote(text) + " is no time zone")
	}
	return location, nil
}
