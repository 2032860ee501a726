package cosmosfake

import (
	"iter"
	"slices"
	"sort"
)

// chunkSize bounds how many pointers move when a document is taken out.
const chunkSize = 256

// sequence holds documents in the order of a number of theirs. Documents come in at the end and
// leave anywhere; finding a place is a binary search over chunks and one within a chunk.
type sequence struct {
	number func(*document) uint64
	chunks [][]*document // none is empty
}

func byLSN() sequence    { return sequence{number: func(d *document) uint64 { return d.lsn }} }
func bySerial() sequence { return sequence{number: func(d *document) uint64 { return d.serial }} }

// add appends a document whose number is not below any other.
func (s *sequence) add(d *document) {
	if n := len(s.chunks); n > 0 && len(s.chunks[n-1]) < chunkSize {
		s.chunks[n-1] = append(s.chunks[n-1], d)
		return
	}
	s.chunks = append(s.chunks, []*document{d})
}

// find returns the place of the first document whose number is at least the given one.
func (s *sequence) find(number uint64) (chunk, at int) {
	chunk = sort.Search(len(s.chunks), func(i int) bool {
		c := s.chunks[i]
		return s.number(c[len(c)-1]) >= number
	})
	if chunk == len(s.chunks) {
		return chunk, 0
	}
	c := s.chunks[chunk]
	return chunk, sort.Search(len(c), func(i int) bool { return s.number(c[i]) >= number })
}

// locate returns the place of a document that is in the sequence.
func (s *sequence) locate(d *document) (chunk, at int, ok bool) {
	chunk, at = s.find(s.number(d))
	for ; chunk < len(s.chunks); chunk, at = chunk+1, 0 {
		if i := slices.Index(s.chunks[chunk][at:], d); i >= 0 {
			return chunk, at + i, true
		}
	}
	return 0, 0, false
}

func (s *sequence) remove(d *document) {
	chunk, at, ok := s.locate(d)
	if !ok {
		return
	}
	c := slices.Delete(s.chunks[chunk], at, at+1)
	s.chunks[chunk] = c
	switch {
	case len(c) == 0:
		s.chunks = slices.Delete(s.chunks, chunk, chunk+1)
	case chunk+1 < len(s.chunks) && len(c)+len(s.chunks[chunk+1]) <= chunkSize/2:
		s.chunks[chunk] = append(c, s.chunks[chunk+1]...)
		s.chunks = slices.Delete(s.chunks, chunk+1, chunk+2)
	}
}

// replace puts a document of the same number in the place of another.
func (s *sequence) replace(old, d *document) {
	if chunk, at, ok := s.locate(old); ok {
		s.chunks[chunk][at] = d
	}
}

// from yields the documents whose number is at least the given one.
func (s *sequence) from(number uint64) iter.Seq[*document] {
	return func(yield func(*document) bool) {
		chunk, at := s.find(number)
		for ; chunk < len(s.chunks); chunk, at = chunk+1, 0 {
			for _, d := range s.chunks[chunk][at:] {
				if !yield(d) {
					return
				}
			}
		}
	}
}
