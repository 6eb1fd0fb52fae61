package member

import (
	"context"
	"encoding/json"
	"os"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/internal/leak"
)

// watchVitals logs the process's sizes.
func watchVitals(j *trace.Journal) {
	read := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}, {Name: "/gc/heap/live:bytes"}}
	for range time.Tick(2 * time.Second) {
		metrics.Read(read)
		if err := j.Vitals(read[0].Value.Uint64(), read[1].Value.Uint64()); err != nil {
			trace.Fatal(err)
		}
	}
}

// watchLateness logs when the process gets no CPU time.
func watchLateness(j *trace.Journal) {
	last := time.Now()
	for range time.Tick(trace.LookEvery) {
		now := time.Now()
		if by := now.Sub(last) - trace.LookEvery; by >= trace.LateBy {
			if err := j.Late(now.Add(-by), now); err != nil {
				trace.Fatal(err)
			}
		}
		last = now
	}
}

// watchLeaks writes once a second what the finder found: a killed process writes nothing at its
// end.
func watchLeaks(f *leak.Finder, file string) {
	for range time.Tick(time.Second) {
		if err := writeLeaks(f, file); err != nil {
			trace.Fatal(err)
		}
	}
}

// leaksMu guards the file.
var leaksMu sync.Mutex

func writeLeaks(f *leak.Finder, file string) error {
	leaksMu.Lock()
	defer leaksMu.Unlock()
	is := trace.Leaks{Shown: map[string]int{}, Found: f.Found()}
	for _, kind := range trace.LeakKinds {
		is.Shown[kind] = f.Shown(kind)
	}
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// writeMetrics writes what the metrics say to a file, and shows them to the finder.
func writeMetrics(reader *sdkmetric.ManualReader, finder *leak.Finder, name string) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	finder.Show("metric", string(text))
	m := trace.Measured{}
	for _, scope := range all.ScopeMetrics {
		for _, metric := range scope.Metrics {
			switch points := metric.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range points.DataPoints {
					to, _ := p.Attributes.Value("siding.to")
					m[strings.TrimSuffix(metric.Name+" "+to.AsString(), " ")] += p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range points.DataPoints {
					outcome, _ := p.Attributes.Value("siding.outcome")
					m[strings.TrimSuffix(metric.Name+" "+outcome.AsString(), " ")] += int64(p.Count)
				}
			}
		}
	}
	if text, err = json.Marshal(m); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
