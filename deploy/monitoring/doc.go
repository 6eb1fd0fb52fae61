// Package monitoring holds the boards in deploy/grafana and the alerts in deploy/prometheus to the
// metrics that siding has. Its tests run the alerts through promtool and through a real Prometheus.
//
// It is a module of its own, since Prometheus's parser brings more modules than all of siding.
package monitoring
