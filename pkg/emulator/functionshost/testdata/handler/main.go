// Command handler is a custom handler that misbehaves on demand, for the tests
// of functionshost. Settings say how it starts and what it answers; the name of
// the function says what else it does.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// seen is what the handler got, one line of JSON per request in the file RECORD.
type seen struct {
	Method, URI, Host string
	Header            http.Header
	Body              string
	TransferEncoding  []string
	Environment       []string
	Arguments         []string
	Directory         string
}

func main() {
	if code, err := strconv.Atoi(os.Getenv("EXIT_AT_START")); err == nil {
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(code)
	}
	if os.Getenv("NEVER_LISTEN") != "" {
		select {}
	}
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{function}", func(w http.ResponseWriter, r *http.Request) {
		record(r)
		switch r.PathValue("function") {
		case "hang":
			<-r.Context().Done()
			select {}
		case "slow":
			<-release
		case "exit":
			code, _ := strconv.Atoi(os.Getenv("EXIT_CODE"))
			os.Exit(code)
		case "print":
			fmt.Println("on stdout")
			fmt.Println("LanguageWorkerConsoleLog of the worker")
			fmt.Fprintln(os.Stderr, "on stderr")
			fmt.Fprintln(os.Stderr, "a WARNing")
			fmt.Fprint(os.Stderr, "without an end")
		}
		answer(w)
	})
	mux.HandleFunc("GET /test/parent", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getppid()) })
	mux.HandleFunc("POST /test/release", func(http.ResponseWriter, *http.Request) { release <- struct{}{} })
	mux.HandleFunc("/api/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/api/elsewhere", http.StatusFound)
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		record(r)
		w.Header().Set("X-Handler", "seen")
		answer(w)
	})
	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT"), Handler: mux, ReadHeaderTimeout: time.Minute}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

func answer(w http.ResponseWriter) {
	w.Header()["Content-Type"] = []string{setting("ANSWER_TYPE", "application/json")}
	status, _ := strconv.Atoi(setting("ANSWER_STATUS", "200"))
	w.WriteHeader(status)
	io.WriteString(w, setting("ANSWER", "{}"))
}

func setting(name, missing string) string {
	if value, ok := os.LookupEnv(name); ok {
		return value
	}
	return missing
}

func record(r *http.Request) {
	path := os.Getenv("RECORD")
	if path == "" {
		return
	}
	body, _ := io.ReadAll(r.Body)
	directory, _ := os.Getwd()
	line, _ := json.Marshal(seen{r.Method, r.RequestURI, r.Host, r.Header, string(body), r.TransferEncoding, os.Environ(), os.Args[1:], directory})
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer file.Close()
	file.Write(append(line, '\n'))
}
