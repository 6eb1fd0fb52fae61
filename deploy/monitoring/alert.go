package monitoring

import (
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/model"
)

// Alerts is a file of Prometheus's alerting rules.
type Alerts struct {
	Groups []AlertGroup `yaml:"groups"`
}

// AlertGroup is a group of such a file.
type AlertGroup struct {
	Name  string  `yaml:"name"`
	Rules []Alert `yaml:"rules"`
}

// Alert is an alerting rule.
type Alert struct {
	Name        string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         time.Duration     `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// ReadAlerts reads a file of alerts.
func ReadAlerts(file string) (Alerts, error) {
	var a Alerts
	text, err := os.ReadFile(file)
	if err != nil {
		return a, err
	}
	if err := yaml.UnmarshalWithOptions(text, &a, yaml.Strict()); err != nil {
		return a, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// All returns the alerts of all groups.
func (a Alerts) All() (all []Alert) {
	for _, g := range a.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// spans are the ranges of an expression, as in [5m].
var spans = regexp.MustCompile(`\[(\w+)\]`)

// Faster returns the alerts with each duration of For, and each range of an expression, divided by
// a factor, so that a test need not wait for them. Nothing else of them is a time: the thresholds
// are metrics.
func (a Alerts) Faster(factor int) Alerts {
	groups := make([]AlertGroup, len(a.Groups))
	for i, g := range a.Groups {
		groups[i] = AlertGroup{Name: g.Name}
		for _, r := range g.Rules {
			r.For /= time.Duration(factor)
			r.Expr = spans.ReplaceAllStringFunc(r.Expr, func(span string) string {
				d, err := model.ParseDuration(span[1 : len(span)-1])
				if err != nil {
					return span
				}
				return "[" + (d / model.Duration(factor)).String() + "]"
			})
			groups[i].Rules = append(groups[i].Rules, r)
		}
	}
	return Alerts{groups}
}

// Text returns the alerts as a file of Prometheus.
func (a Alerts) Text() ([]byte, error) { return yaml.Marshal(a) }
