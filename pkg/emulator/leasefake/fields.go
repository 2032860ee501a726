package leasefake

import (
	"strconv"
	"time"
)

// Fields are what a lease holds besides the partition that it is for. The zero
// value is a lease that was created and that no host has taken yet.
type Fields struct {
	Owner string // host that works on the partition; "" if none does
	// ETag of the last page that was processed, as [At] makes it; nil if none was
	Continuation *string
	Created      time.Time // only Java says it, and only until the first update
	// when a host updated the lease last; zero if none did since its creation
	Updated time.Time
	Mode    Mode // of the feed; V2 and Java's PK-range leases know one only and do not say it
	// only .NET writes it, into a lease container keyed by /partitionKey: the lease's id since
	// 3.59, a GUID before; "" elsewhere
	PartitionKey string
}

// Range is a span of effective partition keys, in the service's hexadecimal
// form: from "" at the least to "FF" at the most.
type Range struct {
	Min string `json:"min"` // inclusive
	Max string `json:"max"` // exclusive
}

// Token is the lease token of an EPK lease, in every SDK.
func (r Range) Token() string { return r.Min + "-" + r.Max }

// feedRange is the property that holds the range of a lease, whatever its name.
func (r Range) feedRange() map[string]any { return map[string]any{"Range": r} }

// Mode is the change feed that a processor reads.
type Mode int

// The modes.
const (
	Incremental Mode = iota // the latest version of each document
	// all versions and deletes, by the name that .NET and most versions of Java have for it
	FullFidelity
	// the same feed, by its newer name, which only Java writes; in .NET's leases it is FullFidelity
	AllVersionsAndDeletes
)

// At is the continuation of a processor that has everything up to an LSN: the
// ETag that the service gives, a decimal in quotes.
func At(lsn int64) *string { return new(`"` + strconv.FormatInt(lsn, 10) + `"`) }

// orNull returns a text, or null if it is empty.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
