package scaler

import (
	"fmt"
	"testing"
)

func TestNamesWithoutAnAnswerAreRememberedUpToALimit(t *testing.T) {
	t.Parallel()
	s := &Server{refused: make(map[string]string)}
	for i := range maxRefused + 1 {
		if name := fmt.Sprint(i); !s.refuses(name, "why") || s.refuses(name, "why") || !s.refuses(name, "another") {
			t.Fatalf("%s is not said once for each reason", name)
		}
	}
	if len(s.refused) > maxRefused {
		t.Errorf("%d are remembered", len(s.refused))
	}
	if last := fmt.Sprint(maxRefused); !s.answers(last) || s.answers(last) {
		t.Errorf("%s is not said to answer again, or is so twice", last)
	}
}
