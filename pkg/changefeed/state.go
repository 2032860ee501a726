package changefeed

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// javaState is what the Java SDK keeps as the continuation of an EPK lease: its
// ChangeFeedState, as JSON in base64url.
type javaState struct {
	Mode      string `json:"Mode"`
	StartFrom struct {
		Type          string `json:"Type"`
		PointInTimeMs int64  `json:"PointInTimeMs"`
		Etag          string `json:"Etag"`
	} `json:"StartFrom"`
	Continuation *struct {
		Continuation []struct {
			Token *string `json:"token"`
			Range *Range  `json:"range"`
		} `json:"Continuation"`
		Range *Range `json:"Range"`
	} `json:"Continuation"`
	Range *Range `json:"Range"`
}

// parseState unwraps a continuation; wrapped is false where it is none of
// Java's, and so an ETag as it stands.
func parseState(continuation string) (state javaState, wrapped bool) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(continuation, "="))
	if err != nil || len(raw) == 0 || raw[0] != '{' {
		return javaState{}, false
	}
	return state, json.Unmarshal(raw, &state) == nil
}

// span is the range that the state covers, nil where it does not say.
func (s javaState) span() *Range {
	var span *Range
	switch c := s.Continuation; {
	case c == nil:
		span = s.Range
	case c.Range != nil:
		span = c.Range
	case len(c.Continuation) == 1:
		span = c.Continuation[0].Range
	}
	if span == nil || !span.valid() {
		return nil
	}
	return span
}

// take replaces the wrapped continuation by what it says.
func (l *Lease) take(s javaState) error {
	l.Mode = ParseMode(s.Mode)
	l.Continuation = ""
	if c := s.Continuation; c != nil {
		// Processors checkpoint one position for a lease. With several, the
		// first alone would pass what the others still have for done.
		if len(c.Continuation) > 1 {
			return fmt.Errorf("its continuation has %d positions, not one", len(c.Continuation))
		}
		if len(c.Continuation) == 1 && c.Continuation[0].Token != nil {
			l.Continuation = *c.Continuation[0].Token
		}
	}
	if l.Continuation != "" {
		return nil
	}
	switch s.StartFrom.Type {
	case "BEGINNING":
		l.StartFrom = &StartFrom{Beginning: true}
	case "NOW":
		l.StartFrom = &StartFrom{}
	case "POINT_IN_TIME":
		l.StartFrom = &StartFrom{Time: time.UnixMilli(s.StartFrom.PointInTimeMs).UTC()}
	case "LEASE":
		l.Continuation = s.StartFrom.Etag
	}
	return nil
}
