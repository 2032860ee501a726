// Package prometheus holds the rules and the dashboard of infra/helm/feedscale against Prometheus' own code: its parser of
// rules, of PromQL, and its engine. It is a module of its own, so that none of that is in feedscale's; run-prometheus.sh runs it.
package prometheus
