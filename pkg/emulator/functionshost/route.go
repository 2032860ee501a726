package functionshost

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// route is the address of an HTTP function.
type route struct {
	function *function
	segments []segment
	methods  []string // upper case; none = all
	level    string   // anonymous, function or admin
}

// segment is a part of a route between two slashes.
type segment struct {
	literal  string // lower case
	name     string // of a parameter, "" for a literal
	optional bool
	rest     bool // takes all that follows, also nothing
}

func newRoute(f *function, prefix string) (*route, error) {
	r := &route{function: f, level: strings.ToLower(f.trigger.text("authLevel"))}
	switch r.level {
	case "":
		r.level = "function"
	case "anonymous", "function", "admin":
	default:
		return nil, fmt.Errorf("authLevel %q of binding %q is none of anonymous, function and admin", r.level, f.trigger.name)
	}
	if methods, ok := f.trigger.properties["methods"].([]any); ok {
		for _, method := range methods {
			r.methods = append(r.methods, strings.ToUpper(fmt.Sprint(method)))
		}
	}
	template := f.trigger.text("route")
	if template == "" {
		template = f.name
	}
	if strings.HasPrefix(template, "/") || strings.HasPrefix(template, "~") {
		return nil, fmt.Errorf("route %q must not start with %q", template, template[:1])
	}
	for part := range strings.SplitSeq(strings.Trim(prefix+"/"+template, "/"), "/") {
		s, err := newSegment(part)
		if err != nil {
			return nil, fmt.Errorf("route %q: %w", template, err)
		}
		if n := len(r.segments); n > 0 && (r.segments[n-1].rest || r.segments[n-1].optional && !s.optional) {
			return nil, fmt.Errorf("route %q: nothing may follow {%s}", template, r.segments[n-1].name)
		}
		r.segments = append(r.segments, s)
	}
	return r, nil
}

func newSegment(part string) (segment, error) {
	name, isParameter := strings.CutPrefix(part, "{")
	if !isParameter {
		if strings.ContainsAny(part, "{}") {
			return segment{}, fmt.Errorf("the segment %q mixes text and a parameter, which is %w", part, errNotImitated)
		}
		return segment{literal: strings.ToLower(part)}, nil
	}
	name, closed := strings.CutSuffix(name, "}")
	name, optional := strings.CutSuffix(name, "?")
	bare := strings.TrimLeft(name, "*")
	switch {
	case strings.ContainsAny(name, ":="):
		return segment{}, fmt.Errorf("the constraint or default of %q is %w", part, errNotImitated)
	case !closed || bare == "" || strings.ContainsAny(bare, "{}*?"):
		return segment{}, fmt.Errorf("the segment %q is no route parameter", part)
	}
	return segment{name: bare, optional: optional, rest: bare != name}, nil
}

// match returns the parameters of a request to this route, which matches in any case and with one
// slash at its end. The host knows no 405: another method, HEAD too, is just not this route (all
// seen on host 4.1037). Optional parameters that are absent are null.
func (r *route) match(method, path string) (map[string]any, bool) {
	if len(r.methods) > 0 && !slices.Contains(r.methods, strings.ToUpper(method)) {
		return nil, false
	}
	var parts []string
	if path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"); path != "" {
		parts = strings.Split(path, "/")
	}
	parameters := map[string]any{}
	for i, s := range r.segments {
		switch {
		case s.rest:
			parameters[s.name] = strings.Join(parts[min(i, len(parts)):], "/")
			return parameters, true
		case i >= len(parts):
			if !s.optional {
				return nil, false
			}
			parameters[s.name] = nil
		case s.name != "":
			parameters[s.name] = parts[i]
		case !strings.EqualFold(s.literal, parts[i]):
			return nil, false
		}
	}
	return parameters, len(parts) <= len(r.segments)
}

// compare orders routes as the host tries them: text before parameters, and
// parameters before one that takes all the rest.
func (r *route) compare(other *route) int {
	rank := func(segments []segment, i int) int {
		switch {
		case i >= len(segments):
			return 3
		case segments[i].rest:
			return 2
		case segments[i].name != "":
			return 1
		}
		return 0
	}
	for i := range max(len(r.segments), len(other.segments)) {
		if a, b := rank(r.segments, i), rank(other.segments, i); a != b {
			return a - b
		}
	}
	return 0
}

// route returns the route of a request, with its parameters.
func (h *Host) route(request *http.Request) (*route, map[string]any) {
	var routes []*route
	for _, f := range h.app.functions {
		if f.route != nil {
			routes = append(routes, f.route)
		}
	}
	slices.SortStableFunc(routes, (*route).compare)
	for _, r := range routes {
		if parameters, ok := r.match(request.Method, request.URL.Path); ok {
			return r, parameters
		}
	}
	return nil, nil
}
