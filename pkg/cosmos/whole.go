package cosmos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// whole lets through what the service would answer, and nothing else: azcosmos takes `{}`, an empty body
// and a page that was cut short for "none". Every other answer is an error of a type of its own, since
// azcosmos would ask again after some of the statuses. It does not read the pages of a feed, which
// changefeed.ReadPage checks as they come.
//
// It also signs the request, and keeps the body for each try.
type whole struct{ signs *authorization }

func (w whole) Do(request *policy.Request) (*http.Response, error) {
	r := request.Raw()
	w.signs.sign(r)
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, lost{err}
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	response, err := request.Next()
	if err != nil {
		return nil, lost{err}
	}
	switch status := response.StatusCode; {
	case status == http.StatusNotModified && r.Header["A-Im"] != nil:
		return response, nil
	case status != http.StatusOK && (status != http.StatusAccepted || r.Method != http.MethodPut):
		return nil, answerError{response}
	case callOf(r.Context()).feed:
		return response, nil
	}
	body, err := runtime.Payload(response)
	if err == nil {
		err = check(r.URL.EscapedPath(), body)
	}
	if err != nil {
		return nil, oddError(err.Error())
	}
	return response, nil
}

// answerError is an answer that is no success.
type answerError struct{ response *http.Response }

func (e answerError) Error() string { return "the service answers " + e.response.Status }

// oddError is why an answer with a good status is none of the service's.
type oddError string

func (e oddError) Error() string { return string(e) }

// resource is as much of a resource as tells whether it is one.
type resource struct {
	RID     string    `json:"_rid"`
	Self    string    `json:"_self"`
	Content *struct{} `json:"content"` // of an offer: azcosmos panics without it
}

// lists is where the items of a list are, by the last segment of its path.
var lists = map[string]string{"dbs": "Databases", "colls": "DocumentCollections", "pkranges": "PartitionKeyRanges", "offers": "Offers"}

// check returns what is wrong with the body of an answer. A path with an odd number of segments is that
// of a list.
func check(path string, body []byte) error {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	kind, isList := segments[len(segments)-1], len(segments)%2 == 1
	if segments[0] == "" {
		return nil // the account's description, of which nothing is needed
	}
	if isList && kind == "docs" {
		_, err := changefeed.ReadPage(bytes.NewReader(body), changefeed.Incremental) // takes half the CPU of encoding/json
		return err
	}
	var (
		fields map[string]json.RawMessage
		items  []resource
		count  *int
	)
	if err := json.Unmarshal(body, &fields); err != nil {
		return err
	}
	name, list := lists[kind], fields[lists[kind]]
	if !isList {
		list = slices.Concat([]byte("["), body, []byte("]")) // one resource
	}
	switch err := json.Unmarshal(list, &items); {
	case err != nil || items == nil:
		return errors.New("it has no " + name)
	case !isList && items[0].RID == "":
		return errors.New("it has no _rid: is that endpoint a Cosmos DB account?")
	case json.Unmarshal(fields["_count"], &count) == nil && count != nil && *count != len(items):
		return fmt.Errorf("its _count is %d and it has %d %s", *count, len(items), name)
	case segments[0] == "offers" && slices.ContainsFunc(items, func(o resource) bool { return o.Self == "" || o.Content == nil }):
		return errors.New("it has an offer without a _self or a content")
	}
	return nil
}
