package changefeed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// EachDocument hands over the documents of a page of a query, as they stand in it: each is valid JSON. A body without a list
// of Documents, or with a _count that contradicts it, is none, and hands nothing over.
func EachDocument(page []byte, take func(document []byte)) error {
	if !json.Valid(page) {
		return json.Unmarshal(page, new(json.RawMessage)) // says where it breaks
	}
	var list, count []byte
	eachMember(page, func(name, value []byte) {
		switch {
		case bytes.EqualFold(name, []byte(documents)):
			list = value
		case bytes.EqualFold(name, []byte(countOfPage)):
			count = value
		}
	})
	found := 0
	if !eachElement(list, func([]byte) { found++ }) {
		return errNoDocuments
	}
	if said, err := strconv.Atoi(string(count)); count != nil && (err != nil || said != found) {
		return fmt.Errorf("its _count is %s and it has %d documents", shown(string(count)), found)
	}
	eachElement(list, take)
	return nil
}

// eachMember walks through the members of a JSON object and hands over their names, as they stand between
// the quotes, and their values. The text has to be valid JSON; it reports whether it is an object.
func eachMember(object []byte, member func(name, value []byte)) bool {
	at := blanks(object, 0)
	if at == len(object) || object[at] != '{' {
		return false
	}
	for at = blanks(object, at+1); object[at] != '}'; at = blanks(object, at) {
		if object[at] == ',' {
			at = blanks(object, at+1)
		}
		end := valueEnd(object, at)
		name := object[at+1 : end-1]
		at = blanks(object, blanks(object, end)+1) // behind the colon
		end = valueEnd(object, at)
		member(name, object[at:end])
		at = end
	}
	return true
}

// eachElement walks through the elements of a JSON array, of valid JSON; it reports whether it is one.
func eachElement(array []byte, element func(value []byte)) bool {
	at := blanks(array, 0)
	if at == len(array) || array[at] != '[' {
		return false
	}
	for at = blanks(array, at+1); array[at] != ']'; at = blanks(array, at) {
		if array[at] == ',' {
			at = blanks(array, at+1)
		}
		end := valueEnd(array, at)
		element(array[at:end])
		at = end
	}
	return true
}

// blanks returns the index of the first byte from at on that is no blank.
func blanks(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
}

// valueEnd returns the index behind the value that begins at an index, of valid JSON.
func valueEnd(text []byte, at int) int {
	switch text[at] {
	case '"':
		return stringEnd(text, at)
	case '{', '[':
	default:
		end := bytes.IndexAny(text[at:], ",]} \n\r\t")
		if end < 0 {
			return len(text)
		}
		return at + end
	}
	for depth := 0; ; at++ {
		switch text[at] {
		case '"':
			at = stringEnd(text, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
}

// stringEnd returns the index behind the string that begins at an index.
func stringEnd(text []byte, at int) int {
	for at++; ; at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
}
