package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

// page measures the handler's answers of the page and of Prometheus metrics with 5,000 processors:
// CPU time and, for metrics, the added memory.
func page(handler string) error {
	s, err := startStandIn(5_000, 4, 1, 0, 0)
	if err != nil {
		return err
	}
	defer s.stop()
	h, err := startHandler(handler, s)
	if err != nil {
		return err
	}
	defer h.stop()
	var tag string
	var list, unchanged, metrics, above []float64
	for run := range runs + 1 {
		if err := h.tick(); err != nil {
			return err
		}
		before := h.cpu()
		if tag, err = h.get("/api/processors?fields=summary", tag, http.StatusOK); err != nil {
			return err
		}
		listed := h.cpu()
		if _, err := h.get("/api/processors?fields=summary", tag, http.StatusNotModified); err != nil {
			return err
		}
		same := h.cpu()
		resident, err := h.fromHere()
		if err != nil {
			return err
		}
		if _, err := h.get("/api/metrics", "", http.StatusOK); err != nil {
			return err
		}
		if run > 0 { // the first answers read every row of the state
			list, unchanged = append(list, listed-before), append(unchanged, same-listed)
			metrics, above = append(metrics, h.cpu()-same), append(above, h.status("VmHWM")-resident)
		}
	}
	row("list of 5,000 processors after a tick, CPU", fmt.Sprintf("%.0f ms", median(list)*1e3), "at most 300 ms")
	row("the same list again (304), CPU", fmt.Sprintf("%.0f ms", median(unchanged)*1e3), "at most 50 ms")
	row("metrics of 5,000 processors, CPU", fmt.Sprintf("%.0f ms", median(metrics)*1e3), "at most 500 ms")
	row("metrics of 5,000 processors, memory above idle", fmt.Sprintf("%.0f MiB", median(above)), "at most 64 MiB")
	return nil
}

// get requests a path of the handler and returns the ETag of the answer.
func (h *handlerProcess) get(path, tag string, status int) (string, error) {
	request, err := http.NewRequest(http.MethodGet, h.url+path, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("If-None-Match", tag)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "", err
	}
	if response.StatusCode != status {
		return "", fmt.Errorf("%s is answered with %s, want %d", path, response.Status, status)
	}
	return response.Header.Get("ETag"), nil
}

// fromHere returns the resident memory and resets the peak (proc(5), clear_refs).
func (h *handlerProcess) fromHere() (float64, error) {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", h.command.Process.Pid), []byte("5"), 0)
	return h.status("VmRSS"), err
}
