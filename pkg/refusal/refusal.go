// Package refusal is the error of a request that a service of Azure refuses or does not answer: what that means, and
// what to do about it. The adapters of Cosmos DB, of Table storage and of Service Bus fill in an [Error], each from
// a table of its own; how it is printed, and what a service's own words may show, is decided here.
//
// The package is internal to the program: its API may change in any release.
package refusal

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Kind is the cause of a refusal, in words. Each adapter has its own.
type Kind string

// Error is the error of a request that a service refused.
type Error struct {
	Kind    Kind   // "" = it has no name
	Status  int    // of HTTP; 0 = no single answer refused
	Given   string // the service's codes, by which people look them up; "" = it gave none
	Words   string // the service's own message, by [Words]; "" = none, or none that may be shown
	Meaning string // what is refused
	Remedy  string // what to do about it
	Command string // of the Azure CLI, for the Remedy; "" = there is none

	Of, Part, Effect string // as in its Cause; Of "" = the Meaning says who refuses
	Sentinel         error  // by which callers decide; nil = none
}

// Unwrap returns the Sentinel.
func (e *Error) Unwrap() error { return e.Sentinel }

// Error returns all of it in one sentence, without the Command.
func (e *Error) Error() string {
	return strings.TrimPrefix(e.Of+": ", ": ") + e.Detail() + ": " + e.Remedy
}

// Detail returns the service's own message, if there is one, and what it means.
func (e *Error) Detail() string {
	detail := e.Meaning
	if e.Given != "" {
		detail += " (" + e.Given + ")"
	}
	if e.Words != "" {
		detail = fmt.Sprintf("it says %q: %s", e.Words, detail)
	}
	return detail
}

// Cause returns who refuses, and how.
func (e *Error) Cause() changefeed.Cause {
	how := string(e.Kind)
	if e.Status != 0 {
		how = strings.TrimSuffix(fmt.Sprintf("%d, %s", e.Status, how), ", ")
	}
	return changefeed.Cause{
		Of: e.Of, Part: e.Part, Says: "refuses (" + how + ")", Effect: e.Effect,
		Remedy: strings.TrimSuffix(e.Remedy+": "+e.Command, ": "),
	}
}

// Unanswered returns an error with its cause: a service that does not answer.
func Unanswered(err error, cause changefeed.Cause) error { return unansweredError{err, cause} }

type unansweredError struct {
	error
	cause changefeed.Cause
}

func (u unansweredError) Unwrap() error           { return u.error }
func (u unansweredError) Cause() changefeed.Cause { return u.cause }

// maxWords is the greatest length of a service's message, in characters.
const maxWords = 300

// secret matches a signature, token or key, in case a message ever has one.
var secret = regexp.MustCompile(`(?i)((?:sig(?:nature)?|[a-z]*key|code)(?:=|%3d)|bearer\s+)[^\s'",;&]+`)

// Words returns a service's message on one line, without secrets.
func Words(text string) string {
	hidden := func(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf) }
	text = secret.ReplaceAllString(strings.Join(strings.FieldsFunc(text, hidden), " "), "${1}REDACTED")
	if runes := []rune(text); len(runes) > maxWords {
		text = string(runes[:maxWords]) + "…"
	}
	return text
}
