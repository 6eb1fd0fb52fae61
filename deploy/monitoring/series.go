package monitoring

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/otlptranslator"
)

// Series are the names of time series, each with its labels.
type Series map[string]labels

type labels map[string]bool

// Golden returns the series of the golden files of a checkout: those of the server and those of a
// consumer. root is its folder.
func Golden(root string) (Series, error) {
	server, err := os.ReadFile(root + "/serve/testdata/metrics.golden")
	if err != nil {
		return nil, err
	}
	consumer, err := os.ReadFile(root + "/examples/telemetry/testdata/telemetry.golden")
	if err != nil {
		return nil, err
	}
	s := exposed(string(server))
	return s, s.translate(string(consumer))
}

var (
	exposedLine = regexp.MustCompile(`(?m)^([a-z_]+)\{(.*)\}$`)
	exposedKey  = regexp.MustCompile(`([a-z_]+)=`)
)

// exposed reads lines as /metrics has them.
func exposed(golden string) Series {
	s := Series{}
	for _, line := range exposedLine.FindAllStringSubmatch(golden, -1) {
		if s[line[1]] == nil {
			s[line[1]] = labels{}
		}
		for _, key := range exposedKey.FindAllStringSubmatch(line[2], -1) {
			s[line[1]][key[1]] = true
		}
	}
	return s
}

// instrument is a metric of OpenTelemetry in a golden file: its name, unit, kind and attributes.
var instrument = regexp.MustCompile(`(?m)^([a-z_.]+)  (\S+)  (histogram|counter|sum|gauge).*\n((?:    .*\n)+)`)

// translate adds the metrics of OpenTelemetry, under the names that its exporter makes.
func (s Series) translate(golden string) error {
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	kinds := map[string]otlptranslator.MetricType{
		"histogram": otlptranslator.MetricTypeHistogram, "counter": otlptranslator.MetricTypeMonotonicCounter,
		"sum": otlptranslator.MetricTypeNonMonotonicCounter, "gauge": otlptranslator.MetricTypeGauge,
	}
	for _, m := range instrument.FindAllStringSubmatch(golden, -1) {
		name, err := namer.Build(otlptranslator.Metric{Name: m[1], Unit: m[2], Type: kinds[m[3]]})
		if err != nil {
			return err
		}
		is := labels{}
		for _, key := range strings.Fields(m[4]) {
			is[strings.ReplaceAll(key, ".", "_")] = true
		}
		if m[3] != "histogram" {
			s[name] = is
			continue
		}
		s[name+"_sum"], s[name+"_count"] = is, is
		s[name+"_bucket"] = is.and("le")
	}
	return nil
}

// and returns the labels with further ones.
func (l labels) and(more ...string) labels {
	all := maps.Clone(l)
	for _, m := range more {
		all[m] = true
	}
	return all
}

// lacks returns an error if a label is none of these.
func (l labels) lacks(of string, names ...string) error {
	for _, n := range names {
		if !l[n] {
			return fmt.Errorf("%s has no label %s; it has %s", of, n, strings.Join(slices.Sorted(maps.Keys(l)), ", "))
		}
	}
	return nil
}
