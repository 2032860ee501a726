// Package dashboard is the HTTP function with the page for people: one document, which loads nothing else. It
// asks the API for what it shows, with the key that it was opened with. function.json beside it is what the host
// reads. Start with [Register]; page/ has the page.
//
// The package is internal to the program: its API may change in any release.
package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/compression"
	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

// Route is where the page is, with the prefix that the host puts before it. The page finds the API beside it.
const Route = "/api/dashboard"

// RouteControls is what the page's controls ask, in a program that has some (docs/dashboard.md, Controls).
const RouteControls = "/api/controls"

//go:embed page
var page embed.FS

// scripts are the parts of the script, in the order in which they need each other. The first ones say what is
// shown and know no page.
var scripts = []string{"rules.js", "route.js", "series.js", "dom.js", "chart.js", "list.js", "one.js", "ran.js", "page.js"}

// Register adds the page to a mux, with controls or without.
func Register(mux *http.ServeMux, controls bool) {
	style, script := part("style.css"), script()
	if controls {
		script += part("controls.js")
	}
	page := []byte(strings.NewReplacer("{{style}}", style, "{{script}}", script).Replace(part("page.html")))
	// Only the page's own style and script apply. It asks nobody but the address it came from. Data cannot
	// become markup.
	policy := strings.Join([]string{
		"default-src 'none'", "style-src '" + hash(style) + "'", "script-src '" + hash(script) + "'", "img-src data:", "connect-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	}, "; ")
	mux.HandleFunc("GET "+Route, func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", policy)
		header.Set("Referrer-Policy", "no-referrer") // the address may hold the function key
		compression.Send(w, r, page, page)
	})
	mux.HandleFunc(Route, problem.OnlyGET)
}

// script puts the script together. The severities of the statuses are those of package report.
func script() string {
	var b strings.Builder
	b.WriteString("'use strict';\nconst SEVERITY = {")
	for _, status := range changefeed.Statuses() { // worst first, which a map would not keep
		fmt.Fprintf(&b, "%s: '%s', ", status, report.SeverityOf(status))
	}
	b.WriteString("};\n")
	for _, name := range scripts {
		b.WriteString(part(name))
	}
	return b.String()
}

// part is an embedded file.
func part(name string) string {
	text, err := page.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it is part of this program
	}
	return string(text)
}

// hash is a source expression for an inline part with that text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
