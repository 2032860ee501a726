package bounded

import (
	"fmt"
	"testing"
)

func TestNamesAreRememberedUpToALimit(t *testing.T) {
	t.Parallel()
	var n Notes
	for i := range maxNotes + 1 {
		if name := fmt.Sprint(i); !n.News(name, "why") || n.News(name, "why") || !n.News(name, "another") {
			t.Fatalf("%s is not said once for each reason", name)
		}
	}
	if len(n.texts) > maxNotes {
		t.Errorf("%d are remembered", len(n.texts))
	}
	if last := fmt.Sprint(maxNotes); !n.News(last, "") || n.News(last, "") {
		t.Errorf("that %s has no text any more is not news, or is so twice", last)
	}
}
