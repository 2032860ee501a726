package state

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Format is the version of the encoding of a State. It is raised with a change that an earlier release
// would misread; a field that an earlier release may ignore is none. States of the releases that did not
// write it yet count as 1 (docs/operate.md, State).
const Format = 1

// ErrNewer is wrapped by the error of a State whose format is newer than Format.
var ErrNewer = errors.New("it was written by a newer release of feedscale")

// encoded is a State as stores keep it.
type encoded struct {
	Format int `json:"format"` // first, so that it is known whatever cannot be read behind it
	State
}

// Encode returns the JSON of s that a store keeps.
func Encode(s State) ([]byte, error) { return json.Marshal(encoded{Format, s}) }

// Decode is the inverse of Encode. The error wraps ErrNewer where the format is newer than this
// release's.
func Decode(text []byte) (State, error) {
	var stored encoded
	err := json.Unmarshal(text, &stored)
	if stored.Format > Format {
		return State{}, fmt.Errorf("%w, in format %d of states, and this release reads up to %d: run that release again, or a later one; or delete this state, which forgets what was decided", ErrNewer, stored.Format, Format)
	}
	return stored.State, err
}
