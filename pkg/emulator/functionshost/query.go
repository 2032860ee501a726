package functionshost

import (
	"fmt"
	"net/url"
	"strings"
)

// rewriteQuery makes the query of a forwarded request as the host does: every name once, in the
// order and the case in which it came first, its values joined by commas, all of them encoded anew
// (Extensions/HttpRequestExtensions.cs, ToHttpRequestMessage and GetQueryCollectionAsDictionary).
func rewriteQuery(raw string) string {
	var names []string
	values := map[string]string{} // by name in lower case
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, value = unescape(name), unescape(value)
		key := strings.ToLower(name)
		if before, known := values[key]; known {
			values[key] = before + "," + value
			continue
		}
		names = append(names, name)
		values[key] = value
	}
	pairs := make([]string, len(names))
	for i, name := range names {
		pairs[i] = escape(name) + "=" + escape(values[strings.ToLower(name)])
	}
	return strings.Join(pairs, "&")
}

// unescape leaves what is no escape as it is.
func unescape(text string) string {
	if decoded, err := url.QueryUnescape(text); err == nil {
		return decoded
	}
	return text
}

// escape encodes as UrlEncoder.Default of .NET (System.Text.Encodings.Web DefaultUrlEncoder.cs).
func escape(text string) string {
	var encoded strings.Builder
	for _, c := range []byte(text) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~!$()*,;@", c) >= 0:
			encoded.WriteByte(c)
		default:
			fmt.Fprintf(&encoded, "%%%02X", c)
		}
	}
	return encoded.String()
}
