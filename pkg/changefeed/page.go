package changefeed

import (
	"bufio"
	"bytes"
	"cmp"
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

// ReadPage reads a page of a feed or of a query from the body of an answer with status 200, to its end.
// It keeps no document: a page of a document of 2 MB takes as much memory as one of 100 bytes. The error
// says that the body is not a whole page: empty, cut short, without a list of Documents, or with a _count
// that contradicts the list. Then nothing is known.
func ReadPage(body io.Reader, mode Mode) (Page, error) {
	in := pageBuffers.Get().(*bufio.Reader)
	in.Reset(body)
	r := pageReader{in: in}
	page := r.page(mode)
	in.Reset(nil)
	pageBuffers.Put(in)
	if errors.Is(r.err, io.EOF) || errors.Is(r.err, io.ErrUnexpectedEOF) {
		r.err = errors.New("it ends too early")
	}
	if r.err != nil {
		return Page{}, fmt.Errorf("the answer is not a page of documents: %w", r.err)
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
	scalar [maxScalar]byte
	kept   int // bytes of scalar that the last text, with its quotes, or number has
	depth  int // of the value that is skipped
}

func (r *pageReader) page(mode Mode) (page Page) {
	var found bool
	var count *int64
	if r.next() != '{' {
		r.fail(errNoObject)
	}
	r.object('{', func(name []byte) {
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
			r.skip(r.next())
		}
	})
	switch {
	case r.err != nil:
	case !found:
		r.fail(errNoDocuments)
	case count != nil && *count != int64(page.Items):
		r.fail(fmt.Errorf("its _count is %d and it has %d documents", *count, page.Items))
	case r.next() != 0 || r.err == nil:
		r.fail(errors.New("something follows its end"))
	case r.err == io.EOF:
		r.err = nil
	}
	return page
}

// documents reads the list, and what is needed of its first element.
func (r *pageReader) documents(mode Mode) (page Page) {
	if r.next() != '[' {
		r.fail(errNoDocuments)
	}
	r.elements(']', func(b byte) {
		switch page.Items++; {
		case page.Items > 1:
			r.skip(b)
		case mode != FullFidelity:
			page.First = r.item(b, "_lsn", "_ts")
		default:
			page.First = &Item{}
			r.object(b, func(name []byte) {
				if b := r.next(); string(name) == "metadata" {
					page.First = r.item(b, "lsn", "crts")
				} else {
					r.skip(b)
				}
			})
		}
	})
	return page
}

// item reads the two properties of an object that are needed. Names count in any case, as for the
// .NET estimator.
func (r *pageReader) item(b byte, lsn, written string) *Item {
	item := &Item{}
	r.object(b, func(name []byte) {
		switch {
		case strings.EqualFold(string(name), lsn):
			if item.LSN = r.number(); item.LSN != nil && *item.LSN < 1 {
				item.LSN = nil
			}
		case strings.EqualFold(string(name), written):
			item.Written = r.number()
		default:
			r.skip(r.next())
		}
	})
	return item
}

// object reads an object that begins with b, and skips any other value. member reads the value of each name.
func (r *pageReader) object(b byte, member func(name []byte)) {
	if b != '{' {
		r.skip(b)
		return
	}
	r.elements('}', func(b byte) {
		if b != '"' {
			r.fail(errSyntax)
		}
		name := r.text(b)
		if r.next() != ':' {
			r.fail(errSyntax)
		}
		member(name)
	})
}

// elements reads what follows an opening bracket. element reads each part, which begins with b.
func (r *pageReader) elements(closing byte, element func(b byte)) {
	first := true
	for b := r.next(); b != closing && r.err == nil; b = r.next() {
		if !first {
			if b != ',' {
				r.fail(errSyntax)
			}
			b = r.next()
		}
		first = false
		element(b)
	}
}

// skip reads past a value of any kind that begins with b.
func (r *pageReader) skip(b byte) {
	if r.depth++; r.depth > maxNesting {
		r.fail(errSyntax)
	}
	switch b {
	case '{':
		r.object(b, func([]byte) { r.skip(r.next()) })
	case '[':
		r.elements(']', r.skip)
	default:
		r.value(b)
	}
	r.depth--
}

// number reads a number, or a number as text; nil if the value is neither.
func (r *pageReader) number() *int64 {
	b := r.next()
	if b == '{' || b == '[' {
		r.skip(b)
		return nil
	}
	if n, ok := parseLSN(string(r.text(b))); ok {
		return &n
	}
	return nil
}

// text reads a text, a number or a word that begins with b, and returns it until the next is read; nothing
// if it is too long.
func (r *pageReader) text(b byte) []byte {
	r.value(b)
	kept := r.scalar[:r.kept]
	if r.kept < maxScalar && bytes.IndexByte(kept, '\\') < 0 {
		return bytes.Trim(kept, `"`)
	}
	var text string
	_ = json.Unmarshal(kept, &text) // a text that was cut has no end
	return []byte(text)
}

// value reads a text, a number or a word that begins with b.
func (r *pageReader) value(b byte) {
	r.kept = 0
	switch {
	case b == '"':
		r.keep(b)
		for ended := false; !ended && r.err == nil; {
			part, _ := r.in.Peek(r.in.Buffered())
			plain := bytes.IndexAny(part, `"\`)
			if plain < 0 {
				plain = len(part)
			}
			r.keep(part[:plain]...)
			_, _ = r.in.Discard(plain)
			b = r.read()
			r.keep(b)
			if b == '\\' {
				r.keep(r.read())
			}
			ended = b == '"'
		}
	case isBare(b):
		for ; isBare(b); b = r.read() {
			r.keep(b)
		}
		if r.err == nil {
			r.err = r.in.UnreadByte()
		}
	default:
		r.fail(errSyntax)
	}
}

// isBare reports whether a byte may be one of a number, or of true, false and null.
func isBare(b byte) bool { return strings.IndexByte("+-.0123456789Eaeflnrstu", b) >= 0 }

// next returns the next byte that is no blank; 0 after an error.
func (r *pageReader) next() byte {
	b := r.read()
	for b == ' ' || b == '\n' || b == '\r' || b == '\t' {
		b = r.read()
	}
	return b
}

// read returns the next byte; 0 after an error.
func (r *pageReader) read() byte {
	b, err := r.in.ReadByte()
	if err != nil {
		r.fail(err)
	}
	if r.err != nil {
		return 0
	}
	return b
}

func (r *pageReader) keep(part ...byte) { r.kept += copy(r.scalar[r.kept:], part) }

// fail keeps the first error.
func (r *pageReader) fail(err error) { r.err = cmp.Or(r.err, err) }
