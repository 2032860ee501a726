package app_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"runtime"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const mebibyte = 1 << 20

// inUse is the memory of this process, garbage included, as the limit of a container counts it.
func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// upload is the body of a form whose file has a size and whose end comes once it is released.
type upload struct {
	head    io.Reader
	left    int
	sent    func() // called when all but the end is sent
	release chan struct{}
}

func (u *upload) Read(p []byte) (int, error) {
	if n, _ := u.head.Read(p); n > 0 {
		return n, nil
	}
	if u.left == 0 {
		u.sent()
		<-u.release
		return 0, io.EOF
	}
	n := min(len(p), u.left)
	u.left -= n
	clear(p[:n])
	return n, nil
}

func (u *upload) Close() error { return nil }

// TestTheBodyOfAGETIsNotRead is not parallel to others, whose memory would count.
func TestTheBodyOfAGETIsNotRead(t *testing.T) {
	s := serve(t, "")
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	_, err := form.CreateFormFile("name", "name")
	testworld.Must(t, err)
	runtime.GC()
	before := inUse()
	var held, ended sync.WaitGroup
	release := make(chan struct{})
	for _, path := range []string{"", "/orders/history", "/orders/simulation"} {
		for range 4 {
			held.Add(1)
			sent := sync.OnceFunc(held.Done)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/api/processors"+path, &upload{bytes.NewReader(head.Bytes()), 25 * mebibyte, sent, release})
			testworld.Must(t, err)
			request.Header.Set("Content-Type", form.FormDataContentType())
			ended.Go(func() {
				if answer, err := http.DefaultClient.Do(request); err == nil { // else it was cut off
					answer.Body.Close()
				}
				sent()
			})
		}
	}
	held.Wait()
	if grown := inUse() - before; grown > 128*mebibyte {
		t.Errorf("12 requests with 25 MiB each take %d MiB", grown/mebibyte)
	}
	close(release)
	ended.Wait()
}
