package cosmos

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

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

// FeedPage reads one page of the change feed with x-ms-max-item-count 1, and keeps nothing of its
// documents but LSN and time. The page may hold more changes than one, since the service does not
// divide a transaction. An answer whose changefeed.Outcome is Answered or Gone is returned as it is;
// every other answer, and none at all, is an error that says what to do, or ErrBudget.
func (a *Account) FeedPage(ctx context.Context, c Container, p Position) (answer changefeed.Answer, used Usage, err error) {
	t := call{feed: true, about: Subject{Container: c}, part: p.Range}
	answer, err = a.feedPage(ctx, &t, p, oneItem)
	if is[oddError](err) && ctx.Err() == nil { // a connection may break in the middle of a page
		answer, err = a.feedPage(ctx, &t, p, oneItem)
	}
	return answer, t.Usage, a.failed(&t, err)
}

// feedPage reads the page once.
func (a *Account) feedPage(ctx context.Context, t *call, p Position, count []string) (answer changefeed.Answer, err error) {
	defer t.end()
	response, err := a.get(ctx, t, t.about.Container.path()+"/docs", p.headers(count))
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if answer = answerOf(response); answer.Status != http.StatusOK {
		return answer, nil
	}
	if answer.Page, err = changefeed.ReadPage(response.Body, p.Mode); err != nil && ctx.Err() == nil {
		err = oddError(err.Error())
	}
	return answer, err
}

// answerOf is an answer of the feed without its page.
func answerOf(response *http.Response) changefeed.Answer {
	date, _ := http.ParseTime(response.Header.Get("Date"))
	return changefeed.Answer{
		Status:       response.StatusCode,
		Substatus:    substatus(response),
		SessionToken: response.Header.Get("X-Ms-Session-Token"),
		ContainerRID: response.Header.Get("X-Ms-Content-Path"),
		Date:         date,
		ETag:         response.Header.Get("Etag"),
	}
}

// Values of headers that many requests share: net/http does not change them.
var (
	incrementalFeed = []string{"Incremental Feed"}
	oneItem         = []string{"1"}
)

// headers sets the headers that ask for one page from the position. A part of a range is addressed
// as the .NET SDK does (azure-cosmos-dotnet-v3, RequestInvokerHandler.cs).
func (p Position) headers(count []string) http.Header {
	h := make(http.Header, 14) // as many as a request has at most, so that the map need not grow
	h["A-Im"], h["X-Ms-Max-Item-Count"] = incrementalFeed, count
	if p.Mode == changefeed.FullFidelity {
		h.Set("A-Im", "Full-Fidelity Feed")
		h.Set("X-Ms-Cosmos-Changefeed-Wire-Format-Version", fullFidelityFormat)
	}
	h["X-Ms-Documentdb-Partitionkeyrangeid"] = []string{p.Range} // its form is canonical
	if p.Part != (changefeed.Range{}) {
		h.Set("X-Ms-Read-Key-Type", "EffectivePartitionKeyRange")
		h.Set("X-Ms-Start-Epk", p.Part.Min)
		h.Set("X-Ms-End-Epk", p.Part.Max)
	}
	// A start time is kept with a token too, as Java does (azure-sdk-for-java, PR #48752).
	if p.Continuation != "" {
		h["If-None-Match"] = []string{p.Continuation}
	}
	if !p.Since.IsZero() {
		h.Set("If-Modified-Since", p.Since.UTC().Format(http.TimeFormat))
	}
	return h
}

// Documents reads one page of the change feed as FeedPage does, and returns its documents as they were
// sent: at most count of them, though the service does not divide a transaction. An answer whose
// changefeed.Outcome is Answered or Gone is returned as it is. Every other answer, and none at all, is
// an error that says what to do.
func (a *Account) Documents(ctx context.Context, c Container, p Position, count int) (answer changefeed.Answer, documents []json.RawMessage, err error) {
	t := call{about: Subject{Container: c}, part: p.Range}
	answer, err = a.feedPage(ctx, &t, p, []string{strconv.Itoa(count)})
	for _, item := range t.items[:min(count, len(t.items))] {
		documents = append(documents, json.RawMessage(item.Raw))
	}
	return answer, documents, a.failed(&t, err)
}
