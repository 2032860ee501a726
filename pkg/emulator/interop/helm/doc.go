// Package helm tests infra/helm/feedscale with Helm's own linter and engine, and checks the
// rendered objects against the types of Kubernetes, of the Prometheus operator and of feedscale's
// own configuration. It is a module of its own, so that feedscale does not depend on these.
// run-helm.sh runs it.
package helm
