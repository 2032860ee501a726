package config

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
)

// withoutJSONEscapes replaces the two escapes of JSON that the YAML parser does not accept: "\/",
// and a pair of surrogates for one character. A text that is not JSON is returned as it is. The
// number of lines stays the same.
func withoutJSONEscapes(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\`)) || !json.Valid(text) {
		return text
	}
	var out bytes.Buffer
	for len(text) > 0 {
		if text[0] != '\\' { // in valid JSON a backslash is always part of an escape
			out.WriteByte(text[0])
			text = text[1:]
			continue
		}
		switch pair := utf16.DecodeRune(escaped(text), escaped(text[min(6, len(text)):])); {
		case pair != '\ufffd':
			out.WriteRune(pair)
			text = text[12:]
		case text[1] == '/':
			out.WriteByte('/')
			text = text[2:]
		default:
			out.Write(text[:2])
			text = text[2:]
		}
	}
	return out.Bytes()
}

// escaped returns the code of the \uXXXX that a text begins with, 0 where it does not begin with
// one.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	code, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(code)
}
