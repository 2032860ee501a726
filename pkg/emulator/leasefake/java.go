package leasefake

import "time"

// JavaPK is a PK-range lease of the Java SDK.
func (p Processor) JavaPK(rangeID string, f Fields) map[string]any {
	return java(p.JavaPKPrefix(), rangeID, f.Continuation, f)
}

// JavaEPK is an EPK lease of the Java SDK. It has no state, and so does not say
// where the processor starts, until the first page was processed.
func (p Processor) JavaEPK(span Range, from StartFrom, f Fields) map[string]any {
	if f.Continuation == nil {
		return p.javaEPK(span, nil, f)
	}
	return p.javaEPK(span, positioned(p.ContainerRID, span, from, f), f)
}

// JavaEPKMigrated is the EPK lease that Java makes of a PK-range lease: its
// state has a position even where no page was processed, and names the
// container by its link in place of its RID.
func (p Processor) JavaEPKMigrated(span Range, from StartFrom, f Fields) map[string]any {
	return p.javaEPK(span, positioned("/dbs/"+p.Database+"/colls/"+p.Container, span, from, f), f)
}

// JavaEPKUnread is an EPK lease with the state of a feed of which nothing was
// read: it has no position, whatever the continuation of the fields.
func (p Processor) JavaEPKUnread(span Range, from StartFrom, f Fields) map[string]any {
	return p.javaEPK(span, &state{Version: 1, ContainerRID: p.ContainerRID, Mode: f.javaMode(), StartFrom: from, Range: &span}, f)
}

func (p Processor) javaEPK(span Range, s *state, f Fields) map[string]any {
	var continuation *string
	if s != nil {
		continuation = new(s.wrap())
	}
	lease := java(p.JavaEPKPrefix(), span.Token(), continuation, f)
	lease["version"], lease["feedRange"] = 1, span.feedRange()
	return lease
}

// java is what all leases of the Java SDK have.
func java(prefix, token string, continuation *string, f Fields) map[string]any {
	return map[string]any{
		"id":                prefix + ".." + token,
		"LeaseToken":        token,
		"ContinuationToken": continuation,
		"timestamp":         f.javaTime(),
		"Owner":             orNull(f.Owner),
	}
}

// javaTime is the time of the last update, as an Instant prints itself; before
// the first, the time of the creation, as a ZonedDateTime does: it names its
// zone once more, and leaves out the seconds of a full minute.
func (f Fields) javaTime() string {
	if !f.Updated.IsZero() {
		t := f.Updated.UTC()
		return t.Format("2006-01-02T15:04:05" + javaFraction(t) + "Z")
	}
	t := f.Created.UTC()
	if t.Equal(t.Truncate(time.Minute)) {
		return t.Format("2006-01-02T15:04Z[UTC]")
	}
	return t.Format("2006-01-02T15:04:05" + javaFraction(t) + "Z[UTC]")
}

// javaFraction is the layout of a fraction of a second: three digits at a time,
// as many as it takes.
func javaFraction(t time.Time) string {
	switch n := time.Duration(t.Nanosecond()); {
	case n == 0:
		return ""
	case n%time.Millisecond == 0:
		return ".000"
	case n%time.Microsecond == 0:
		return ".000000"
	default:
		return ".000000000"
	}
}

func (f Fields) javaMode() string {
	switch f.Mode {
	case FullFidelity:
		return "FULL_FIDELITY"
	case AllVersionsAndDeletes:
		return "ALL_VERSIONS_AND_DELETES"
	default:
		return "INCREMENTAL"
	}
}
