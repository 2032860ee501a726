// Package helm holds infra/helm/feedscale against Helm's own linter and engine, and what it renders
// against the types of Kubernetes, of the Prometheus operator and of feedscale's own configuration.
// It is a module of its own, so that none of that is in feedscale's; run-helm.sh runs it.
package helm
