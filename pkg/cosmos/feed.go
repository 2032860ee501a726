package cosmos

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// FeedPage reads one page of the change feed with x-ms-max-item-count 1, and keeps nothing of its
// documents but LSN and time. The page may hold more changes than one, since the service does not
// divide a transaction. An answer whose changefeed.Outcome is Answered or Gone is returned as it is;
// every other answer, and none at all, is an error that says what to do, or ErrBudget.
func (a *Account) FeedPage(ctx context.Context, c Container, p changefeed.Position) (answer changefeed.Answer, used Usage, err error) {
	t := call{feed: true, about: Subject{Container: c}, part: p.Range}
	answer, err = a.feedPage(ctx, &t, p, 1)
	if is[oddError](err) && ctx.Err() == nil { // a connection may break in the middle of a page
		answer, err = a.feedPage(ctx, &t, p, 1)
	}
	return answer, t.Usage, a.failed(&t, err)
}

// feedPage reads the page once.
func (a *Account) feedPage(ctx context.Context, t *call, p changefeed.Position, count int) (answer changefeed.Answer, err error) {
	defer t.end()
	h := make(http.Header, 14) // as many as a request has at most, so that the map need not grow
	h.Set("X-Ms-Max-Item-Count", strconv.Itoa(count))
	p.Headers(func(name, value string) { h[name] = []string{value} }) // names have their canonical form
	response, err := a.get(ctx, t, t.about.Container.path()+"/docs", h)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if answer = changefeed.AnswerOf(response.StatusCode, response.Header.Get); answer.Status != http.StatusOK {
		return answer, nil
	}
	if answer.Page, err = changefeed.ReadPage(response.Body, p.Mode); err != nil && ctx.Err() == nil {
		err = oddError(err.Error())
	}
	return answer, err
}

// Documents reads one page of the change feed as FeedPage does, and returns its documents as they were
// sent: at most count of them, though the service does not divide a transaction. An answer whose
// changefeed.Outcome is Answered or Gone is returned as it is. Every other answer, and none at all, is
// an error that says what to do.
func (a *Account) Documents(ctx context.Context, c Container, p changefeed.Position, count int) (answer changefeed.Answer, documents []json.RawMessage, err error) {
	t := call{about: Subject{Container: c}, part: p.Range}
	answer, err = a.feedPage(ctx, &t, p, count)
	for _, item := range t.items[:min(count, len(t.items))] {
		documents = append(documents, json.RawMessage(item.Raw))
	}
	return answer, documents, a.failed(&t, err)
}
