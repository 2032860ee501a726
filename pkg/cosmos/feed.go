package cosmos

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Container names a container of an account, by ids.
type Container struct{ Database, ID string }

func (c Container) String() string { return c.Database + "/" + c.ID }

// link is the resource link that a signature covers, which is not percent-encoded.
func (c Container) link() string { return "dbs/" + c.Database + "/colls/" + c.ID }

func (c Container) path() string {
	return "/dbs/" + url.PathEscape(c.Database) + "/colls/" + url.PathEscape(c.ID)
}

// Position says from where to read in the change feed of a container.
type Position struct {
	Mode         changefeed.Mode
	Range        string           // partition key range id
	Part         changefeed.Range // the part of that range to read; zero = all of it
	Continuation string           // an ETag, sent as it is; "" = from Since
	Since        time.Time        // sent with a precision of one second; zero = from the beginning
}

// fullFidelityFormat is the wire format version of the all-versions-and-deletes feed.
const fullFidelityFormat = "2021-09-15"

// FeedPage reads one page of the change feed with x-ms-max-item-count 1. The page may hold more
// changes than one, since the service does not divide a transaction. An answer whose
// changefeed.Outcome is Answered or Gone is returned as it is; every other answer, and none at all,
// is an error that says what to do.
func (a *Account) FeedPage(ctx context.Context, c Container, p Position) (changefeed.Answer, Usage, error) {
	var t tally
	about := subject{container: c}
	response, err := a.get(context.WithValue(ctx, tallyKey{}, &t), c.path()+"/docs", resource{"docs", c.link()}, p.headers)
	if err != nil {
		return changefeed.Answer{}, t.spent(), a.failed(about, &t, err)
	}
	answer := changefeed.Answer{
		Status:       response.StatusCode,
		Substatus:    substatus(response),
		SessionToken: response.Header.Get(headerSessionToken),
		ContainerRID: response.Header.Get(headerContentPath),
	}
	answer.Date, _ = http.ParseTime(response.Header.Get("Date"))
	switch changefeed.OutcomeOf(answer.Status, answer.Substatus) {
	case changefeed.Answered, changefeed.Gone:
		answer.Body, err = runtime.Payload(response)
		return answer, t.spent(), err
	default:
		return answer, t.spent(), a.refused(about, response)
	}
}

// headers sets the headers that ask for one page from the position. A part of a range is addressed
// as the .NET SDK does (azure-cosmos-dotnet-v3, RequestInvokerHandler.cs).
func (p Position) headers(h http.Header) {
	h.Set(headerIM, "Incremental Feed")
	if p.Mode == changefeed.FullFidelity {
		h.Set(headerIM, "Full-Fidelity Feed")
		h.Set(headerWireFormat, fullFidelityFormat)
	}
	h.Set(headerMaxItemCount, "1")
	h.Set(headerRangeID, p.Range)
	if p.Part != (changefeed.Range{}) {
		h.Set(headerKeyType, "EffectivePartitionKeyRange")
		h.Set(headerStartEPK, p.Part.Min)
		h.Set(headerEndEPK, p.Part.Max)
	}
	switch {
	case p.Continuation != "":
		h.Set("If-None-Match", p.Continuation)
	case !p.Since.IsZero():
		h.Set("If-Modified-Since", p.Since.UTC().Format(http.TimeFormat))
	}
}
