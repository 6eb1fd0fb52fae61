// Package charts renders the Helm chart of redrive serve, and tests it: by Helm's own linter, by
// the types of Kubernetes, and by the server that reads the configuration which it renders. The
// manifests in deploy/kubernetes are made here, too.
package charts
