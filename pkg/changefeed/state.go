package changefeed

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// javaState is the continuation of an EPK lease of the Java SDK: its ChangeFeedState as JSON in
// base64url (azure-sdk-for-java, ChangeFeedStateV1.java).
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

// parseState unwraps a continuation; wrapped is false where it is not one of Java's and so is an
// ETag.
func parseState(continuation string) (state javaState, wrapped bool) {
	if !strings.HasPrefix(continuation, "e") { // which is what base64 makes of '{'
		return javaState{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(continuation, "="))
	if err != nil || len(raw) == 0 || raw[0] != '{' {
		return javaState{}, false
	}
	return state, json.Unmarshal(raw, &state) == nil
}

// span returns the range that the state covers, nil where it does not say.
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

// applyState replaces the wrapped continuation by the mode, position and start in it.
func (l *Lease) applyState(s javaState) error {
	l.Mode = ParseMode(s.Mode)
	l.Continuation = ""
	if c := s.Continuation; c != nil {
		// Processors checkpoint one position per lease. Of several, using the first alone could
		// hide what is pending at the others.
		if len(c.Continuation) > 1 {
			return fmt.Errorf("its continuation has %d positions, not one", len(c.Continuation))
		}
		if len(c.Continuation) == 1 && c.Continuation[0].Token != nil {
			l.Continuation = *c.Continuation[0].Token
		}
	}
	if l.Continuation != "" && s.StartFrom.Type != "POINT_IN_TIME" {
		return nil // a start time is sent with the position, too; any other start is over
	}
	switch s.StartFrom.Type {
	case "BEGINNING":
		l.StartFrom = &StartFrom{Beginning: true}
	case "NOW":
		l.StartFrom = &StartFrom{}
	case "POINT_IN_TIME":
		if at := StartAt(time.UnixMilli(s.StartFrom.PointInTimeMs)); l.Continuation == "" || !at.Beginning {
			l.StartFrom = &at
		}
	case "LEASE":
		l.Continuation = s.StartFrom.Etag
	}
	return nil
}
