// Package prometheus checks the rules and the dashboard of infra/helm/feedscale with Prometheus'
// own code: its parser of rules and of PromQL, and its engine. It is a module of its own, so that
// feedscale does not depend on these. run-prometheus.sh runs it.
package prometheus
