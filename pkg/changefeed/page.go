package changefeed

import (
	"bufio"
	"bytes"
	"cmp"
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

// ReadPage reads a page of a feed or of a query from the body of an answer with status 200, to its end.
// It keeps no document: a page of a document of 2 MB takes as much memory as one of 100 bytes. The error
// says that the body is not a whole page: empty, cut short, without a list of Documents, or with a _count
// that contradicts the list. Then nothing is known.
func ReadPage(body io.Reader, mode Mode) (Page, error) {
	in := pageBuffers.Get().(*bufio.Reader)
	in.Reset(body)
	r := pageReader{in: in, mode: mode}
	err := r.whole()
	in.Reset(nil)
	pageBuffers.Put(in)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	if err != nil {
		return Page{}, fmt.Errorf("the answer is not a page of documents: %w", err)
	}
	return r.page, nil
}

const (
	pageBuffer = 8 << 10 // bytes that are read at a time
	maxScalar  = 64      // bytes of a text or a number that are kept; nothing longer is looked for
	maxNesting = 1000    // objects and lists within each other; the service allows 128 in a document
)

var pageBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, pageBuffer) }}

// pageReader reads the JSON of a page. encoding/json cannot do it: its decoder holds each text and
// each value as a whole, so that 64 pages with a document of 2 MB each take hundreds of MiB; and
// reading a document token by token takes ten times the CPU.
//
// Its methods read the value that follows. The first error stays, and then nothing follows.
type pageReader struct {
	in    *bufio.Reader
	mode  Mode
	page  Page
	lists int    // of Documents
	count *int64 // the _count; nil if there is none
	depth int    // of the value that is read
	err   error

	scalar [maxScalar]byte // the beginning of the last text, number or word
	kept   int             // bytes of it
}

// place says where a value is in a page.
type place int

const (
	elsewhere place = iota // nothing is needed of the value
	inPage
	inDocuments
	inDocument // the first one
	inMetadata // of the first document, in the feed of all versions and deletes
	asCount
	asLSN
	asWritten
)

// whole reads a page to the end of the body.
func (r *pageReader) whole() error {
	if b := r.next(); b == '{' {
		r.value(b, inPage)
	} else {
		r.fail("it is no JSON object")
	}
	switch {
	case r.err != nil:
	case r.lists != 1:
		r.fail("it has no Documents, or two lists of them")
	case r.count != nil && *r.count != int64(r.page.Items):
		r.fail(fmt.Sprintf("its _count is %d and it has %d documents", *r.count, r.page.Items))
	case r.next() != 0 || r.err == nil:
		r.fail("something follows its end")
	case r.err == io.EOF:
		return nil
	}
	return r.err
}

// value reads a value that begins with b, and keeps what is needed of its place.
func (r *pageReader) value(b byte, at place) {
	if r.depth++; r.depth > maxNesting {
		r.broken()
	}
	switch b {
	case '{':
		r.elements('}', func(b byte) {
			name := r.text(b)
			if b != '"' || r.next() != ':' {
				r.broken()
			}
			member := r.member(at, name)
			r.value(r.next(), member)
		})
	case '[':
		if at == inDocuments {
			r.lists++
		}
		r.elements(']', func(b byte) {
			element := elsewhere
			if at == inDocuments {
				if r.page.Items++; r.page.Items == 1 {
					r.page.First, element = &Item{}, inDocument
				}
			}
			r.value(b, element)
		})
	default:
		text := r.text(b)
		if at == elsewhere {
			break
		}
		n, ok := parseLSN(string(text)) // a number, or a number as text
		switch {
		case !ok:
		case at == asCount:
			r.count = &n
		case at == asLSN && n >= 1:
			r.page.First.LSN = &n
		case at == asWritten:
			r.page.First.Written = &n
		}
	}
	r.depth--
}

// member returns the place of an object's member. The names of an item's properties count in any case, as
// for the .NET estimator.
func (r *pageReader) member(of place, name []byte) place {
	versions := r.mode == FullFidelity
	is := func(text string) bool { return strings.EqualFold(string(name), text) }
	switch {
	case of == inPage && string(name) == "Documents":
		return inDocuments
	case of == inPage && string(name) == "_count":
		return asCount
	case of == inDocument && versions && string(name) == "metadata":
		return inMetadata
	case of == inDocument && !versions && is("_lsn"), of == inMetadata && is("lsn"):
		return asLSN
	case of == inDocument && !versions && is("_ts"), of == inMetadata && is("crts"):
		return asWritten
	default:
		return elsewhere
	}
}

// elements reads what follows an opening bracket. element reads each part, which begins with b.
func (r *pageReader) elements(closing byte, element func(b byte)) {
	first := true
	for b := r.next(); b != closing && r.err == nil; b = r.next() {
		if !first {
			if b != ',' {
				r.broken()
			}
			b = r.next()
		}
		first = false
		element(b)
	}
}

// text reads a text, a number or a word that begins with b, and returns its beginning, without quotes, until
// the next is read.
func (r *pageReader) text(b byte) []byte {
	r.kept = 0
	switch {
	case b == '"':
		for ended := false; !ended && r.err == nil; {
			part, _ := r.in.Peek(r.in.Buffered())
			plain := len(part)
			if at := bytes.IndexAny(part, `"\`); at >= 0 {
				plain = at
			}
			r.keep(part[:plain]...)
			_, _ = r.in.Discard(plain)
			switch b = r.read(); b {
			case '"':
				ended = true
			case '\\':
				r.keep(b, r.read())
			default:
				r.keep(b)
			}
		}
	case isBare(b):
		for ; isBare(b); b = r.read() {
			r.keep(b)
		}
		if r.err == nil {
			r.err = r.in.UnreadByte()
		}
	default:
		r.broken()
	}
	return r.scalar[:r.kept]
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
	if r.err == nil {
		r.err = err
	}
	if r.err != nil {
		return 0
	}
	return b
}

func (r *pageReader) keep(part ...byte) { r.kept += copy(r.scalar[r.kept:], part) }

// fail keeps the first error.
func (r *pageReader) fail(says string) { r.err = cmp.Or(r.err, errors.New(says)) }

func (r *pageReader) broken() { r.fail("its JSON is broken") }
