package main_test

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"
)

// lines are those that a running command prints.
type lines struct{ next chan string }

func newLines(r io.Reader) *lines {
	l := &lines{next: make(chan string, 1000)}
	go func() {
		defer close(l.next)
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			l.next <- scanner.Text()
		}
	}()
	return l
}

// await returns the next line with a text in it.
func (l *lines) await(t *testing.T, text string) string {
	t.Helper()
	timeout := time.After(90 * time.Second)
	for {
		select {
		case line, ok := <-l.next:
			if !ok {
				t.Fatalf("the command ended before it printed %s", text)
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			t.Fatalf("%s was not printed in time", text)
		}
	}
}
