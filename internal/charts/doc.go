// Package charts renders the Helm chart and the manifests of redrive serve, and tests them. The
// tests are Helm's own linter, the types of Kubernetes, and the server, which reads the
// configuration that the chart renders.
package charts
