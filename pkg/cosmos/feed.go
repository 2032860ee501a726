package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Container names a container of an account, by ids. Where throughput is read and replaced, one without
// an ID is the database itself.
type Container struct{ Database, ID string }

func (c Container) String() string { return c.Database + "/" + c.ID }

// database returns what holds the container.
func (c Container) database() Container { return Container{Database: c.Database} }

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
	Continuation string           // an ETag, sent as it is; "" = from Since, "*" = from now
	Since        time.Time        // sent with a precision of one second; zero = none, from the beginning without a Continuation
}

// fullFidelityFormat is the wire format version of the all-versions-and-deletes feed.
const fullFidelityFormat = "2021-09-15"

// brokenRetries is how often a page that is not whole is read again: a connection may break in the
// middle of one.
const brokenRetries = 1

// FeedPage reads one page of the change feed with x-ms-max-item-count 1, and keeps nothing of its
// documents but LSN and time. The page may hold more changes than one, since the service does not
// divide a transaction. An answer whose changefeed.Outcome is Answered or Gone is returned as it is;
// every other answer, and none at all, is an error that says what to do, or ErrBudget.
func (a *Account) FeedPage(ctx context.Context, c Container, p Position) (changefeed.Answer, Usage, error) {
	var (
		t      tally
		answer changefeed.Answer
		broken error // the page was not whole
	)
	about := subject{container: c}
	r := request{
		class: feed, about: about, method: http.MethodGet, path: c.path() + "/docs", signed: resource{"docs", c.link()},
		headers: p.headers, streams: true,
	}
	read := func(response *http.Response) error {
		answer = changefeed.Answer{
			Status:       response.StatusCode,
			Substatus:    substatus(response),
			SessionToken: response.Header.Get(headerSessionToken),
			ContainerRID: response.Header.Get(headerContentPath),
			ETag:         response.Header.Get(headerETag),
		}
		answer.Date, _ = http.ParseTime(response.Header.Get("Date"))
		switch changefeed.OutcomeOf(answer.Status, answer.Substatus) {
		case changefeed.Answered:
			if answer.Status == http.StatusOK {
				answer.Page, broken = changefeed.ReadPage(response.Body, p.Mode)
			}
			return nil
		case changefeed.Gone:
			return nil
		default:
			return a.refused(about, response)
		}
	}
	for try := 0; ; try++ {
		broken = nil
		if err := a.do(ctx, &t, r, read); err != nil {
			return answer, t.spent(), err
		}
		if broken == nil {
			return answer, t.spent(), nil
		}
		if try == brokenRetries || ctx.Err() != nil {
			return answer, t.spent(), fmt.Errorf("account %s, container %s: %w: the next poll asks again", a.host, c, broken)
		}
	}
}

// headers sets the headers that ask for one page from the position. A part of a range is addressed
// as the .NET SDK does (azure-cosmos-dotnet-v3, RequestInvokerHandler.cs).
func (p Position) headers(h http.Header) {
	h[headerIM] = incrementalFeed
	if p.Mode == changefeed.FullFidelity {
		h.Set(headerIM, "Full-Fidelity Feed")
		h.Set(headerWireFormat, fullFidelityFormat)
	}
	h[headerMaxItemCount] = oneItem
	h[headerRangeID] = []string{p.Range} // its form is canonical
	if p.Part != (changefeed.Range{}) {
		h.Set(headerKeyType, "EffectivePartitionKeyRange")
		h.Set(headerStartEPK, p.Part.Min)
		h.Set(headerEndEPK, p.Part.Max)
	}
	// A start time is kept with a token too, as Java does (azure-sdk-for-java, PR #48752).
	if p.Continuation != "" {
		h["If-None-Match"] = []string{p.Continuation}
	}
	if !p.Since.IsZero() {
		h.Set("If-Modified-Since", p.Since.UTC().Format(http.TimeFormat))
	}
}
