// Package monitoring makes the boards in deploy/grafana, and holds them and the alerts in
// deploy/prometheus to the metrics that siding has. Its tests run the alerts through promtool and
// through a real Prometheus.
//
// It is a module of its own, since Prometheus's parser brings more modules than all of siding.
//
// The boards are plain structs of the few fields that Grafana needs of them: see [Board].
package monitoring
