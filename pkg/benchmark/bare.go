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
)

// bareLoop makes the feed requests of a tick with net/http alone: the least that any client of the
// service has to do.
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

// run makes one request per lease.
func (b *bareLoop) run() error {
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
	link := "dbs/" + database + "/colls/" + containerID(r.container)
	request, err := http.NewRequest(http.MethodGet, b.standIn.endpoint+link+"/docs", nil)
	if err != nil {
		return err
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	mac := hmac.New(sha256.New, b.key)
	io.WriteString(mac, "get\ndocs\n"+link+"\n"+strings.ToLower(date)+"\n\n")
	h := request.Header
	h.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	h.Set("x-ms-date", date)
	h.Set("x-ms-version", "2020-11-05")
	h.Set("A-IM", "Incremental Feed")
	h.Set("If-None-Match", `"0"`)
	h.Set("x-ms-max-item-count", "1")
	h.Set("x-ms-documentdb-partitionkeyrangeid", strconv.Itoa(r.rangeID))
	response, err := b.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotModified {
		return fmt.Errorf("the bare loop got %s", response.Status)
	}
	return nil
}
