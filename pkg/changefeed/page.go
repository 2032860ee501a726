package changefeed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Page is what a page of the change feed says, without its documents.
type Page struct {
	Items int   // changes in the page
	First *Item // the oldest of them; nil if there are none
}

// Item is what is needed of one change. What cannot be read of it is nil: it still is a change.
type Item struct {
	LSN     *int64 // of its transaction, at least 1
	Written *int64 // Unix seconds
}

var (
	errNoObject    = errors.New("it is no JSON object")
	errNoDocuments = errors.New("it has no Documents")
	errSyntax      = errors.New("its JSON is broken")
)

// ReadPage reads a page from the body of an answer with status 200, to its end. It keeps no
// document: a page of a document of 2 MB takes as much memory as one of 100 bytes. The error says
// that the body is not a whole page of a change feed: empty, cut short, without a list of Documents,
// or with a _count that contradicts the list. Then nothing is known.
func ReadPage(body io.Reader, mode Mode) (Page, error) {
	in := pageBuffers.Get().(*bufio.Reader)
	in.Reset(body)
	page, err := (&pageReader{in: in}).page(mode)
	in.Reset(nil)
	pageBuffers.Put(in)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	if err != nil {
		return Page{}, fmt.Errorf("the answer is not a page of a change feed: %w", err)
	}
	return page, nil
}

const (
	pageBuffer = 8 << 10 // bytes that are read at a time
	maxScalar  = 64      // bytes of a text or a number that are kept; what is longer is not looked for
	maxNesting = 1000    // objects and lists within each other; the service allows 128 in a document
)

var pageBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, pageBuffer) }}

// pageReader reads the JSON of a page. encoding/json cannot do it: its decoder holds each text and
// each value as a whole, so that 64 pages with a document of 2 MB each take hundreds of MiB; and
// reading a document token by token takes ten times the CPU.
//
// Its methods read the value that follows. The first error stays, and then nothing follows.
type pageReader struct {
	in     *bufio.Reader
	err    error
	kind   byte // of the last token: one of {}[],: or '"' for a text, '0' for a number or a word
	again  bool // the last token is the next one, too
	scalar [maxScalar]byte
	kept   int // bytes of scalar that the last text, with its quotes, or number has
	depth  int // of the value that is skipped
}

func (r *pageReader) page(mode Mode) (page Page, _ error) {
	var (
		found bool
		count *int64
	)
	if r.next() != '{' && (r.err == nil || r.err == errSyntax) {
		r.err = errNoObject
	}
	r.object(func(name []byte) {
		switch string(name) {
		case "Documents":
			if found {
				r.fail(errors.New("it has two lists of Documents"))
			}
			found = true
			page = r.documents(mode)
		case "_count":
			count = r.number()
		default:
			r.skip()
		}
	})
	switch {
	case r.err != nil:
		return Page{}, r.err
	case !found:
		return Page{}, errNoDocuments
	case count != nil && *count != int64(page.Items):
		return Page{}, fmt.Errorf("its _count is %d and it has %d documents", *count, page.Items)
	}
	switch kind := r.next(); {
	case kind != 0:
		return Page{}, errors.New("something follows its end")
	case r.err != io.EOF:
		return Page{}, r.err
	}
	return page, nil
}

// documents reads the list, and what is needed of its first element.
func (r *pageReader) documents(mode Mode) (page Page) {
	if r.next() != '[' {
		r.fail(errNoDocuments)
	}
	for r.more(page.Items == 0, ']') {
		page.Items++
		if page.Items > 1 {
			r.skip()
			continue
		}
		page.First = &Item{}
		if mode != FullFidelity {
			r.item("_lsn", "_ts", page.First)
			continue
		}
		r.ifObject(func(name []byte) {
			if string(name) == "metadata" {
				r.item("lsn", "crts", page.First)
			} else {
				r.skip()
			}
		})
	}
	return page
}

// item reads the two properties of an object that are needed. Names count in any case, as for the
// .NET estimator.
func (r *pageReader) item(lsn, written string, into *Item) {
	r.ifObject(func(name []byte) {
		switch {
		case strings.EqualFold(string(name), lsn):
			if into.LSN = r.number(); into.LSN != nil && *into.LSN < 1 {
				into.LSN = nil
			}
		case strings.EqualFold(string(name), written):
			into.Written = r.number()
		default:
			r.skip()
		}
	})
}

// ifObject reads an object, and skips any other value.
func (r *pageReader) ifObject(member func(name []byte)) {
	if r.next() != '{' {
		r.again = true
		r.skip()
		return
	}
	r.object(member)
}

// object reads what follows an opening brace. member reads each value.
func (r *pageReader) object(member func(name []byte)) {
	for first := true; r.more(first, '}'); first = false {
		if r.next() != '"' {
			r.fail(errSyntax)
		}
		name := r.text()
		if r.next() != ':' {
			r.fail(errSyntax)
		}
		member(name)
	}
}

// more reports whether another member or element follows, rather than the closing bracket.
func (r *pageReader) more(first bool, closing byte) bool {
	kind := r.next()
	switch {
	case r.err != nil || kind == closing:
		return false
	case first:
		r.again = true
	case kind != ',':
		r.fail(errSyntax)
	}
	return r.err == nil
}

// skip reads past a value of any kind.
func (r *pageReader) skip() {
	if r.depth++; r.depth > maxNesting {
		r.fail(errSyntax)
	}
	switch r.next() {
	case '{':
		r.object(func([]byte) { r.skip() })
	case '[':
		for first := true; r.more(first, ']'); first = false {
			r.skip()
		}
	case '"', '0':
	default:
		r.fail(errSyntax)
	}
	r.depth--
}

// number reads a number, or a number as text; nil if the value is neither.
func (r *pageReader) number() *int64 {
	if kind := r.next(); kind != '"' && kind != '0' {
		r.again = true
		r.skip()
		return nil
	}
	if n, ok := parseLSN(string(r.text())); ok {
		return &n
	}
	return nil
}

// text returns the last text, number or word, until the next is read; nothing if it is too long.
func (r *pageReader) text() []byte {
	kept := r.scalar[:r.kept]
	if r.kept < maxScalar && bytes.IndexByte(kept, '\\') < 0 {
		return bytes.Trim(kept, `"`)
	}
	var text string
	_ = json.Unmarshal(kept, &text) // a text that was cut has no end
	return []byte(text)
}

// next reads a token and returns its kind; 0 if there is none.
func (r *pageReader) next() byte {
	if r.again {
		r.again = false
		return r.kind
	}
	if r.kind = 0; r.err != nil {
		return 0
	}
	b := r.read()
	for b == ' ' || b == '\n' || b == '\r' || b == '\t' {
		b = r.read()
	}
	r.kept = 0
	switch {
	case strings.IndexByte("{}[],:", b) >= 0:
		r.kind = b
	case b == '"':
		r.kind = b
		r.keep(b)
		for ended := false; !ended && r.err == nil; {
			part, _ := r.in.Peek(r.in.Buffered())
			plain := bytes.IndexAny(part, `"\`)
			if plain < 0 {
				plain = len(part)
			}
			r.kept += copy(r.scalar[r.kept:], part[:plain])
			_, _ = r.in.Discard(plain)
			b = r.read()
			r.keep(b)
			if b == '\\' {
				r.keep(r.read())
			}
			ended = b == '"'
		}
	case isBare(b):
		r.kind = '0'
		for ; isBare(b); b = r.read() {
			r.keep(b)
		}
		if r.err == nil {
			r.err = r.in.UnreadByte()
		}
	default:
		r.fail(errSyntax)
	}
	return r.kind
}

// isBare reports whether a byte may be one of a number, or of true, false and null.
func isBare(b byte) bool { return strings.IndexByte("+-.0123456789Eaeflnrstu", b) >= 0 }

// read returns the next byte; 0 after an error.
func (r *pageReader) read() byte {
	b, err := r.in.ReadByte()
	if err != nil {
		r.fail(err)
	}
	return b
}

func (r *pageReader) keep(b byte) {
	if r.kept < maxScalar {
		r.scalar[r.kept] = b
		r.kept++
	}
}

// fail keeps the first error.
func (r *pageReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}
