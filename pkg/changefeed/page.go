package changefeed

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Page is what a page of the change feed says, without its documents.
type Page struct {
	Items int   // changes in the page
	First *Item // the oldest of them; nil where there are none
}

// Item is what is needed of one change. What cannot be read of it is nil: it still is a change.
type Item struct {
	LSN     *int64 // of its transaction, at least 1
	Written *int64 // Unix seconds
}

// ReadPage reads a page from the body of an answer with status 200, to its end. It keeps no document:
// a page of a document of 2 MB takes as much memory as one of 100 bytes. The error says that the body
// is not a whole page of a change feed: empty, cut short, without a list of Documents, or with a _count
// that contradicts the list. Then nothing is known.
func ReadPage(body io.Reader, mode Mode) (Page, error) {
	r := pageReaders.Get().(*pageReader)
	r.in.Reset(body)
	r.count = nil
	page, err := r.page(mode)
	r.in.Reset(nil)
	pageReaders.Put(r)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Page{}, errors.New("the answer is not a page of a change feed: it ends too early")
	case err != nil:
		return Page{}, fmt.Errorf("the answer is not a page of a change feed: %w", err)
	}
	return page, nil
}

const (
	pageBuffer  = 8 << 10 // bytes that are looked at at a time
	maxScalar   = 64      // bytes of a name or a number that is kept; what is longer is none that is looked for
	maxNesting  = 1000    // objects and lists within each other; the service allows 128 in a document
	documents   = "Documents"
	countOfPage = "_count"
)

var pageReaders = sync.Pool{New: func() any { return &pageReader{in: bufio.NewReaderSize(nil, pageBuffer)} }}

// pageReader walks through the JSON of a page and keeps nothing but some names and numbers.
type pageReader struct {
	in     *bufio.Reader
	scalar [maxScalar]byte
	count  *int64 // _count, where the page has said it
}

var (
	errNoObject    = errors.New("it is no JSON object")
	errNoDocuments = errors.New("it has no Documents")
	errSyntax      = errors.New("its JSON is broken")
)

func (r *pageReader) page(mode Mode) (Page, error) {
	var (
		page  Page
		found bool
	)
	if b, err := r.next(); err != nil || b != '{' {
		return Page{}, orError(err, errNoObject)
	}
	err := r.object(func(name []byte) error {
		switch string(name) {
		case documents:
			if found {
				return errors.New("it has two lists of Documents")
			}
			found = true
			return r.documents(&page, mode)
		case countOfPage:
			var err error
			r.count, err = r.number()
			return err
		}
		return r.skip()
	})
	switch {
	case err != nil:
		return Page{}, err
	case !found:
		return Page{}, errNoDocuments
	case r.count != nil && *r.count != int64(page.Items):
		return Page{}, fmt.Errorf("its _count is %d and it has %d documents", *r.count, page.Items)
	}
	switch b, err := r.next(); {
	case err == nil:
		return Page{}, fmt.Errorf("%q follows its end", b)
	case err != io.EOF:
		return Page{}, err
	}
	return page, nil
}

// documents reads the list, and of its first element what is needed.
func (r *pageReader) documents(page *Page, mode Mode) error {
	b, err := r.next()
	if err != nil || b != '[' {
		return orError(err, errNoDocuments)
	}
	return r.list(func() error {
		page.Items++
		if page.Items > 1 {
			return r.skip()
		}
		page.First = &Item{}
		if mode == FullFidelity {
			return r.ifObject(func(name []byte) error {
				if string(name) == "metadata" {
					return r.ifObject(func(name []byte) error { return r.field(name, "lsn", "crts", page.First) })
				}
				return r.skip()
			})
		}
		return r.ifObject(func(name []byte) error { return r.field(name, "_lsn", "_ts", page.First) })
	})
}

// field reads a property of an item. Names count in any case, as for the .NET estimator.
func (r *pageReader) field(name []byte, lsn, written string, into *Item) (err error) {
	switch {
	case strings.EqualFold(string(name), lsn):
		if into.LSN, err = r.number(); into.LSN != nil && *into.LSN < 1 {
			into.LSN = nil
		}
		return err
	case strings.EqualFold(string(name), written):
		into.Written, err = r.number()
		return err
	}
	return r.skip()
}

// ifObject reads the properties of a value that is an object, and skips any other.
func (r *pageReader) ifObject(property func(name []byte) error) error {
	b, err := r.next()
	if err != nil {
		return err
	}
	if b != '{' {
		if err := r.in.UnreadByte(); err != nil {
			return err
		}
		return r.skip()
	}
	return r.object(property)
}

// object reads the properties behind an opening brace. property reads each value, and overwrites the name
// with that.
func (r *pageReader) object(property func(name []byte) error) error {
	b, err := r.next()
	if err != nil {
		return err
	}
	if b == '}' {
		return nil
	}
	for {
		if b != '"' {
			return errSyntax
		}
		name, err := r.text()
		if err != nil {
			return err
		}
		if b, err = r.next(); err != nil || b != ':' {
			return orError(err, errSyntax)
		}
		if err := property(name); err != nil {
			return err
		}
		switch b, err = r.next(); {
		case err != nil:
			return err
		case b == '}':
			return nil
		case b != ',':
			return errSyntax
		}
		if b, err = r.next(); err != nil {
			return err
		}
	}
}

// list reads the elements behind an opening bracket. element reads each.
func (r *pageReader) list(element func() error) error {
	b, err := r.next()
	if err != nil || b == ']' {
		return err
	}
	if err := r.in.UnreadByte(); err != nil {
		return err
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch b, err = r.next(); {
		case err != nil:
			return err
		case b == ']':
			return nil
		case b != ',':
			return errSyntax
		}
	}
}

// number reads a value that is a number, or a number as text; nil where it is neither.
func (r *pageReader) number() (*int64, error) {
	b, err := r.next()
	if err != nil {
		return nil, err
	}
	var text []byte
	switch {
	case b == '"':
		text, err = r.text()
	case b == '{' || b == '[':
		if err = r.in.UnreadByte(); err == nil {
			err = r.skip()
		}
		return nil, err
	default:
		text, err = r.bare(b)
	}
	if err != nil {
		return nil, err
	}
	n, ok := parseLSN(string(text))
	if !ok {
		return nil, nil
	}
	return &n, nil
}

// skip reads past a value of any kind, without keeping it.
func (r *pageReader) skip() error {
	var (
		closing [maxNesting / 8]byte // one bit for each level: whether it is an object
		depth   int
	)
	for {
		b, err := r.next()
		if err != nil {
			return err
		}
		switch b {
		case '"':
			err = r.skipText()
		case '{', '[':
			if depth++; depth >= maxNesting {
				return errSyntax
			}
			mask := byte(1) << (depth % 8)
			closing[depth/8] &^= mask
			if b == '{' {
				closing[depth/8] |= mask
			}
		case '}', ']':
			if depth == 0 || (closing[depth/8]&(1<<(depth%8)) != 0) != (b == '}') {
				return errSyntax
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return errSyntax
			}
			continue
		default:
			_, err = r.bare(b)
		}
		if err != nil || depth == 0 {
			return err
		}
	}
}

// next returns the next byte that is no blank.
func (r *pageReader) next() (byte, error) {
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return b, nil
		}
	}
}

// text reads what follows an opening quote, unescaped; nothing where it is longer than any that is looked
// for. What it returns is overwritten by the next read.
func (r *pageReader) text() ([]byte, error) {
	kept := append(r.scalar[:0], '"')
	for {
		part, err := r.in.ReadSlice('"')
		if err != nil && err != bufio.ErrBufferFull {
			return nil, err
		}
		if len(kept)+len(part) > maxScalar {
			if err == nil && !escapedEnd(kept, part) {
				return nil, nil
			}
			if err == nil { // the quote is escaped: what follows it belongs to the text
				return nil, r.skipText()
			}
			return nil, r.skipTextAfter(part)
		}
		kept = append(kept, part...)
		if err == nil && !escapedEnd(kept[:len(kept)-len(part)], part) {
			if bytes.IndexByte(kept, '\\') < 0 {
				return kept[1 : len(kept)-1], nil
			}
			text, err := strconv.Unquote(string(kept))
			if err != nil {
				return nil, nil // an escape of JSON that Go does not have, such as \/: no name that is looked for has one
			}
			return []byte(text), nil
		}
	}
}

// skipText reads past the end of a text.
func (r *pageReader) skipText() error { return r.skipTextAfter(nil) }

// skipTextAfter reads past the end of a text of which the last bytes read are given.
func (r *pageReader) skipTextAfter(before []byte) error {
	odd := oddBackslashes(before) // whether the bytes so far end in an escape that is not complete
	for {
		part, err := r.in.ReadSlice('"')
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
		body := part
		if err == nil {
			body = part[:len(part)-1]
		}
		// A run of backslashes may go on from the part before.
		if run := trailingBackslashes(body); run == len(body) && odd {
			odd = run%2 == 0
		} else {
			odd = run%2 == 1
		}
		if err == nil {
			if !odd {
				return nil
			}
			odd = false // the quote was escaped
		}
	}
}

// escapedEnd reports whether the quote at the end of part is escaped.
func escapedEnd(before, part []byte) bool {
	body := part[:len(part)-1]
	run := trailingBackslashes(body)
	if run == len(body) {
		run += trailingBackslashes(before)
	}
	return run%2 == 1
}

func oddBackslashes(text []byte) bool { return trailingBackslashes(text)%2 == 1 }

func trailingBackslashes(text []byte) int {
	n := 0
	for n < len(text) && text[len(text)-1-n] == '\\' {
		n++
	}
	return n
}

// bare reads a number or a word that begins with a byte; no more of it than maxScalar.
func (r *pageReader) bare(first byte) ([]byte, error) {
	const bareBytes = "+-.0123456789Eaeflnrstu" // of numbers, true, false and null
	if strings.IndexByte(bareBytes, first) < 0 {
		return nil, errSyntax
	}
	kept := append(r.scalar[:0], first)
	for {
		b, err := r.in.ReadByte()
		if err == io.EOF {
			return kept, nil
		}
		if err != nil {
			return nil, err
		}
		if strings.IndexByte(bareBytes, b) < 0 {
			return kept, r.in.UnreadByte()
		}
		if len(kept) < maxScalar {
			kept = append(kept, b)
		}
	}
}

// orError returns the first error that is one.
func orError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
