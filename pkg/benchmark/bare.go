package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// bareLoop sends the requests of a tick with net/http and ignores the answers: the minimum that any
// client of the service must do.
type bareLoop struct {
	standIn *standIn
	key     []byte
	client  *http.Client
}

func newBareLoop(s *standIn) *bareLoop {
	key, _ := base64.StdEncoding.DecodeString(s.key)
	return &bareLoop{s, key, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}}
}

type bareRequest struct {
	container int
	rangeID   int
}

// run queries the leases, and sends one request for each.
func (b *bareLoop) run() error {
	if err := b.query(); err != nil {
		return err
	}
	requests := make(chan bareRequest)
	failed := make(chan error, concurrency)
	var wg sync.WaitGroup
	for range concurrency {
		wg.Go(func() {
			for r := range requests {
				if err := b.do(r); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for c := range b.standIn.containers {
		for p := range b.standIn.partitions {
			requests <- bareRequest{c, p}
		}
	}
	close(requests)
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (b *bareLoop) do(r bareRequest) error {
	request, err := b.request(http.MethodGet, containerID(r.container), nil)
	if err != nil {
		return err
	}
	h := request.Header
	h.Set("A-IM", "Incremental Feed")
	h.Set("If-None-Match", `"0"`)
	h.Set("x-ms-max-item-count", "1")
	h.Set("x-ms-documentdb-partitionkeyrangeid", strconv.Itoa(r.rangeID))
	_, err = b.send(request)
	return err
}

// query reads all pages of the leases.
func (b *bareLoop) query() error {
	text := `{"query":"SELECT c.` + strings.Join(changefeed.LeaseFields, ", c.") + ` FROM c","parameters":[]}`
	for continuation := ""; ; {
		request, err := b.request(http.MethodPost, leaseContainer, strings.NewReader(text))
		if err != nil {
			return err
		}
		h := request.Header
		h.Set("Content-Type", "application/query+json")
		h.Set("x-ms-documentdb-isquery", "True")
		h.Set("x-ms-documentdb-query-enablecrosspartition", "True")
		h.Set("x-ms-max-item-count", "1000")
		if continuation != "" {
			h.Set("x-ms-continuation", continuation)
		}
		answer, err := b.send(request)
		if err != nil {
			return err
		}
		if continuation = answer.Get("x-ms-continuation"); continuation == "" {
			return nil
		}
	}
}

// request returns a signed request for the documents of a container.
func (b *bareLoop) request(method, container string, body io.Reader) (*http.Request, error) {
	link := "dbs/" + database + "/colls/" + container
	request, err := http.NewRequest(method, b.standIn.endpoint+link+"/docs", body)
	if err != nil {
		return nil, err
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	mac := hmac.New(sha256.New, b.key)
	io.WriteString(mac, strings.ToLower(method)+"\ndocs\n"+link+"\n"+strings.ToLower(date)+"\n\n")
	h := request.Header
	h.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	h.Set("x-ms-date", date)
	h.Set("x-ms-version", "2020-11-05")
	return request, nil
}

// send discards the body of the answer and returns its headers.
func (b *bareLoop) send(request *http.Request) (http.Header, error) {
	response, err := b.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotModified {
		return nil, fmt.Errorf("the bare loop got %s", response.Status)
	}
	return response.Header, nil
}
