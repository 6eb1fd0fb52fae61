package chaos

import (
	"encoding/json"
	"os"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/sidingkafka/siding/internal/leak"
)

// watchVitals tells the journal of the process's sizes.
func watchVitals(j *journal) {
	read := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}, {Name: "/gc/heap/live:bytes"}}
	for range time.Tick(2 * time.Second) {
		metrics.Read(read)
		if err := j.vitals(read[0].Value.Uint64(), read[1].Value.Uint64()); err != nil {
			fatal(err)
		}
	}
}

// watchLateness tells the journal when the process gets no CPU time.
func watchLateness(j *journal) {
	last := time.Now()
	for range time.Tick(lookEvery) {
		now := time.Now()
		if by := now.Sub(last) - lookEvery; by >= lateBy {
			if err := j.late(now.Add(-by), now); err != nil {
				fatal(err)
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
			fatal(err)
		}
	}
}

// leaksMu guards the file.
var leaksMu sync.Mutex

func writeLeaks(f *leak.Finder, file string) error {
	leaksMu.Lock()
	defer leaksMu.Unlock()
	is := leaks{Seen: map[string]int{}, Found: f.Found()}
	for _, kind := range leakKinds {
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
