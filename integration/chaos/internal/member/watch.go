package member

import (
	"encoding/json"
	"os"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/internal/leak"
)

// watchVitals tells the journal of the process's sizes.
func watchVitals(j *trace.Journal) {
	read := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}, {Name: "/gc/heap/live:bytes"}}
	for range time.Tick(2 * time.Second) {
		metrics.Read(read)
		if err := j.Vitals(read[0].Value.Uint64(), read[1].Value.Uint64()); err != nil {
			trace.Fatal(err)
		}
	}
}

// watchLateness tells the journal when the process gets no CPU time.
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
	is := trace.Leaks{Seen: map[string]int{}, Found: f.Found()}
	for _, kind := range trace.LeakKinds {
		is.Seen[kind] = f.Seen(kind)
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
