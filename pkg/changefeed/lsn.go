package changefeed

import (
	"strconv"
	"strings"
)

// SessionLSN returns the LSN in a session token, such as "0:123", "0:-1#123" or "0:-1#123#1=100":
// the text after the first ':' is split at '#', and the LSN is the second part, or the only one. The
// .NET estimator reads it in the same way (azure-cosmos-dotnet-v3, ExtractLsn in ChangeFeedEstimatorIterator.cs).
// ok is false if there is no number.
func SessionLSN(token string) (lsn int64, ok bool) {
	if _, after, found := strings.Cut(token, ":"); found {
		token = after
	}
	first, rest, found := strings.Cut(token, "#")
	if !found {
		return parseLSN(first)
	}
	second, _, _ := strings.Cut(rest, "#")
	return parseLSN(second)
}

// ContinuationLSN returns the LSN in a continuation. An ETag of the change feed usually is a quoted
// decimal LSN, but no contract says so; ok is false if it is not.
func ContinuationLSN(etag string) (lsn int64, ok bool) {
	etag = strings.TrimPrefix(etag, "W/")
	return parseLSN(strings.Trim(etag, `"`))
}

// parseLSN reads a number as .NET's NumberStyles.Number does, which the .NET estimator uses: it
// accepts surrounding blanks, a sign, thousands separators and a fraction of zeros.
func parseLSN(s string) (int64, bool) {
	s = strings.ReplaceAll(strings.TrimSpace(s), ",", "")
	if whole, fraction, found := strings.Cut(s, "."); found && strings.Trim(fraction, "0") == "" {
		s = whole
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}
