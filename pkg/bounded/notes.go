package bounded

import "sync"

// Notes remembers the last text about each name, so that it is logged once. The zero Notes has none. It is
// safe for concurrent use.
type Notes struct {
	mu    sync.Mutex
	texts map[string]string
}

// maxNotes is the greatest number of names that a Notes remembers: with one more, it forgets all of them.
const maxNotes = 10_000

// News remembers a text about a name, "" for none, and reports whether it differs from the last one.
func (n *Notes) News(name, text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.texts[name] == text {
		return false
	}
	delete(n.texts, name)
	if text == "" {
		return true
	}
	if n.texts == nil || len(n.texts) >= maxNotes {
		n.texts = map[string]string{}
	}
	n.texts[name] = text
	return true
}
