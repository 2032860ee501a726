package changefeed_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// TestAnAnswerThatIsNoWholePageSaysNothing has what a 200 can hold that is not one: an empty body, a
// body cut short, an answer of a proxy.
func TestAnAnswerThatIsNoWholePageSaysNothing(t *testing.T) {
	t.Parallel()
	const whole = `{"_rid":"q0oIALS6YvQ=","Documents":[{"id":"a\\\"b","n":{"x":[1,2]},"_lsn":5,"_ts":1772668516},{"id":"c"}],"_count":2}`
	for n := range len(whole) {
		if page, err := changefeed.ReadPage(strings.NewReader(whole[:n]), changefeed.Incremental); err == nil {
			t.Errorf("cut to %q it is read as %+v", whole[:n], page)
		}
	}
	if page, err := changefeed.ReadPage(strings.NewReader(whole), changefeed.Incremental); err != nil || page.Items != 2 || *page.First.LSN != 5 || *page.First.Written != 1772668516 {
		t.Errorf("whole it is read as %+v, %v", page, err)
	}
	for _, c := range []struct{ rule, body, says string }{
		{"an object without Documents", `{}`, "has no Documents"},
		{"another object", `{"error":"proxy"}`, "has no Documents"},
		{"Documents that are null", `{"Documents":null}`, "has no Documents"},
		{"Documents that are an object", `{"Documents":{}}`, "has no Documents"},
		{"a page of HTML", `<html>`, "no JSON object"},
		{"a list", `[]`, "no JSON object"},
		{"a count that contradicts the documents", `{"Documents":[],"_count":3}`, "_count is 3"},
		{"two lists", `{"Documents":[],"Documents":[{}]}`, "two lists"},
		{"something behind the page", `{"Documents":[]}{`, "follows its end"},
		{"a brace that closes a list", `{"Documents":[{"a":[1}]}`, "broken"},
		{"a word behind the page", `{"Documents":[]}5`, "follows its end"},
		{"no comma in a document that is skipped", `{"Documents":[{"a":[1 2]}]}`, "broken"},
		{"a comma without a property behind it", `{"Documents":[{"a":1,}]}`, "broken"},
		{"a name that is no text", `{"Documents":[{},{1:2}]}`, "broken"},
		{"no value", `{"Documents":[{"a":}]}`, "broken"},
		{"nesting without an end", `{"Documents":[` + strings.Repeat("[", 5000), "broken"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			page, err := changefeed.ReadPage(strings.NewReader(c.body), changefeed.Incremental)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("read as %+v, %v", page, err)
			}
		})
	}
}

// TestABodyThatTheConnectionCutsEndsTooEarly has the error of net/http for a body that is shorter than
// its header says.
func TestABodyThatTheConnectionCutsEndsTooEarly(t *testing.T) {
	t.Parallel()
	for _, part := range []string{`{"Documents":[{"id":"a`, `{"Documents":[]}`} {
		body := io.MultiReader(strings.NewReader(part), iotest.ErrReader(io.ErrUnexpectedEOF))
		page, err := changefeed.ReadPage(body, changefeed.Incremental)
		if err == nil || !strings.Contains(err.Error(), "ends too early") {
			t.Errorf("%s is read as %+v, %v", part, page, err)
		}
	}
}

// TestTextIsSkippedWhateverItHolds puts escapes at every place around the end of the reader's buffer.
func TestTextIsSkippedWhateverItHolds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`\\`, `\"`, `\\\"`, `\\\\`, `é\"\\`} {
		for pad := 8180; pad < 8200; pad++ {
			body := `{"Documents":[{"t":"` + strings.Repeat("x", pad) + text + `","_lsn":7}]}`
			page, err := changefeed.ReadPage(strings.NewReader(body), changefeed.Incremental)
			if err != nil || page.First == nil || page.First.LSN == nil || *page.First.LSN != 7 {
				t.Fatalf("%s behind %d bytes: %+v, %v", text, pad, page, err)
			}
		}
	}
}

// generated is a page of one document of a size, which is never in memory as a whole.
func generated(size int) io.Reader {
	return io.MultiReader(strings.NewReader(`{"Documents":[{"id":"a","text":"`), io.LimitReader(endless{}, int64(size)), strings.NewReader(`","_lsn":5,"_ts":6}],"_count":1}`))
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestABigDocumentTakesNoMoreMemoryThanASmallOne(t *testing.T) {
	const size = 2 << 20
	read := func() {
		page, err := changefeed.ReadPage(generated(size), changefeed.Incremental)
		if err != nil || *page.First.LSN != 5 {
			t.Fatal(page, err)
		}
	}
	read()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 64 {
		read()
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > size {
		t.Errorf("64 pages of %d bytes took %d bytes", size, took)
	}
}

func BenchmarkReadPage(b *testing.B) {
	for _, size := range []int{100, 10_000, 2 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := changefeed.ReadPage(generated(size), changefeed.Incremental); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReadPageOfProperties has documents of many short values, as most are.
func BenchmarkReadPageOfProperties(b *testing.B) {
	for _, n := range []int{12, 300} {
		var properties strings.Builder
		for i := range n {
			fmt.Fprintf(&properties, `"text%d":"value of %d","number%d":%d,`, i, i, i, i)
		}
		body := `{"Documents":[{` + properties.String() + `"_lsn":5,"_ts":6}],"_count":1}`
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := changefeed.ReadPage(strings.NewReader(body), changefeed.Incremental); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
