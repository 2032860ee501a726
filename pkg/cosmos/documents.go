package cosmos

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Documents reads one page of the change feed as FeedPage does, and returns its documents as they were
// sent: at most count of them, though the service does not divide a transaction. An answer whose
// changefeed.Outcome is Answered or Gone is returned as it is. Every other answer, and none at all, is
// an error that says what to do.
func (a *Account) Documents(ctx context.Context, c Container, p Position, count int) (answer changefeed.Answer, documents []json.RawMessage, err error) {
	t := call{about: subject{container: c}, part: p.Range}
	response, err := a.position(ctx, &t, c, p, []string{strconv.Itoa(count)})
	if err != nil {
		return answer, nil, a.failed(&t, err)
	}
	defer response.Body.Close()
	answer = answerOf(response)
	if answer.Status != http.StatusOK {
		return answer, nil, nil
	}
	var page struct{ Documents []json.RawMessage }
	body, err := runtime.Payload(response)
	if err == nil {
		answer.Page, err = changefeed.ReadPage(bytes.NewReader(body), p.Mode)
	}
	if err == nil {
		err = json.Unmarshal(body, &page)
	}
	return answer, page.Documents[:min(count, len(page.Documents))], err
}
