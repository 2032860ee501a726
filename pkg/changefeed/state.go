package changefeed

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// javaState is the continuation of an EPK lease of the Java SDK: its ChangeFeedState as JSON in
// base64url, in Java's order (azure-sdk-for-java, ChangeFeedStateV1.java).
type javaState struct {
	Version      int    `json:"V"`
	ContainerRID string `json:"Rid"`
	Mode         string
	StartFrom    json.RawMessage
	Continuation *javaPositions `json:",omitempty"`
}

type javaPositions struct {
	Version      int    `json:"V"`
	ContainerRID string `json:"Rid"`
	Continuation []javaPosition
	Range        *Range
}

type javaPosition struct {
	Token *string `json:"token"`
	Range *Range  `json:"range"`
}

// parseState unwraps a continuation of Java's; wrapped is false if it is an ETag as it stands.
func parseState(continuation string) (state javaState, wrapped bool) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(continuation, "="))
	if err != nil || !bytes.HasPrefix(raw, []byte("{")) {
		return state, false
	}
	return state, json.Unmarshal(raw, &state) == nil
}

// applyState replaces the wrapped continuation by the mode, position and start in it.
func (l *Lease) applyState(s javaState) error {
	l.Mode, l.Continuation = ParseMode(s.Mode), ""
	if c := s.Continuation; c != nil {
		// Processors checkpoint one position per lease. Of several, using the first alone could
		// hide what is pending at the others.
		if len(c.Continuation) > 1 {
			return fmt.Errorf("its continuation has %d positions, not one", len(c.Continuation))
		}
		for _, position := range c.Continuation {
			l.Continuation = *cmp.Or(position.Token, new(string))
		}
	}
	var start struct {
		Type          string
		PointInTimeMs int64
		Etag          string
	}
	if err := json.Unmarshal(s.StartFrom, &start); err != nil && s.StartFrom != nil {
		return fmt.Errorf("its StartFrom cannot be read: %v", err)
	}
	at := StartAt(time.UnixMilli(start.PointInTimeMs))
	switch first := l.Continuation == ""; {
	case start.Type == "POINT_IN_TIME" && (first || !at.Beginning): // it is sent with the position, too
		l.StartFrom = &at
	case !first: // any other start is over
	case start.Type == "BEGINNING":
		l.StartFrom = &StartFrom{Beginning: true}
	case start.Type == "NOW":
		l.StartFrom = &StartFrom{}
	case start.Type == "LEASE":
		l.Continuation = start.Etag
	}
	return nil
}

// javaContinuation is the continuation of an EPK lease for some keys that has come to an ETag: the state
// that it had, or before its first checkpoint a new one, with that position.
func (s Scheme) javaContinuation(before string, keys Range, etag string) string {
	state, _ := parseState(before)
	if len(state.StartFrom) == 0 {
		state = javaState{Version: 1, ContainerRID: s.ContainerRID, Mode: "INCREMENTAL", StartFrom: javaStart(s.Start)}
		if s.Mode == FullFidelity {
			state.Mode = "FULL_FIDELITY"
		}
	}
	positions := javaPositions{Version: 1, ContainerRID: state.ContainerRID}
	if state.Continuation != nil && state.Continuation.Version != 0 {
		positions = *state.Continuation
	}
	positions.Continuation, positions.Range = []javaPosition{{&etag, &keys}}, &keys
	state.Continuation = &positions
	text, _ := json.Marshal(state) // never fails: it has texts, numbers and what was JSON before
	return base64.URLEncoding.EncodeToString(text)
}

func javaStart(start StartFrom) json.RawMessage {
	switch {
	case start.Beginning:
		return json.RawMessage(`{"Type":"BEGINNING"}`)
	case start.Now():
		return json.RawMessage(`{"Type":"NOW"}`)
	}
	return fmt.Appendf(nil, `{"Type":"POINT_IN_TIME","PointInTimeMs":%d}`, start.Time.UnixMilli())
}
