package cli

import (
	"cmp"
	"context"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/docs"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/shadow"
)

// Schema prints the JSON Schema of the processors file, of a scale event, or of a report.
func Schema(env program.Env, f *program.Flags) {
	f.Use, f.Short = "schema [processors|event|report]", "print the JSON Schema of the processors file, of a scale event, or of a report"
	f.Example = "feedscale schema > processors.schema.json\nfeedscale schema event"
	f.ValidArgs = []string{"processors", "event", "report"}
	f.Run(func(_ context.Context, names []string) error {
		name := cmp.Or(strings.Join(names, " "), "processors")
		schema, ok := map[string]string{"processors": config.Schema(), "event": events.Schema(), "report": shadow.Schema()}[name]
		if !ok {
			return program.Unknown("schema of", name, f.ValidArgs)
		}
		_, err := io.WriteString(env.Stdout, schema)
		return err
	})
}

// Explain prints the meaning of a status, a finding or a term: a section of docs/status.md, or a
// row of docs/glossary.md.
func Explain(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "explain WORD", "say what a status, a finding or a term means, and what to do", program.GroupLook
	f.Example = "feedscale explain stalled\nfeedscale explain drain rate"
	f.Settings("COLUMNS")
	words := func() []string { return slices.Sorted(maps.Keys(meanings())) }
	f.CompleteArguments(words)
	f.Run(func(_ context.Context, args []string) error {
		word := strings.ToLower(strings.Join(args, " "))
		text, ok := meanings()[word]
		switch {
		case word == "":
			text = strings.Join(words(), ", ") + "\n"
		case !ok:
			return program.Unknown("explanation of", word, words())
		}
		var wrapped strings.Builder
		for line := range strings.Lines(text) {
			wrapped.WriteString(console.Wrap(line, "", env.Style().Width))
		}
		_, err := io.WriteString(env.Stdout, wrapped.String())
		return err
	})
}

var (
	sections = regexp.MustCompile(`(?m)^## `)
	terms    = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|`)
)

// meanings are the texts by their words in lower case. If a word is both a status and a term, the
// status wins.
func meanings() map[string]string {
	all := make(map[string]string)
	for _, row := range terms.FindAllStringSubmatch(docs.Glossary, -1) {
		for word := range strings.SplitSeq(row[1], ", ") {
			all[strings.ToLower(word)] = docs.Plain(row[1]+": "+row[2]) + "\n"
		}
	}
	delete(all, "term") // the heads of the tables
	for _, section := range sections.Split(docs.Status, -1)[1:] {
		word, text, _ := strings.Cut(section, "\n")
		all[word] = docs.Plain(word+"\n"+strings.TrimRight(text, "\n")) + "\n"
	}
	return all
}
