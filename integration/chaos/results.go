package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// total sums the runs on one kind of broker.
type total struct {
	runs, held     int
	minutes        float64
	records, calls int
	faults         int
}

// printResults sums what a file of results has, by the kind of broker. Runs that could not be made
// are left out.
func printResults(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	totals := map[string]*total{}
	dec := json.NewDecoder(f)
	for line := 1; ; line++ {
		var rep Report
		switch err := dec.Decode(&rep); {
		case errors.Is(err, io.EOF):
			for _, broker := range slices.Sorted(maps.Keys(totals)) {
				t := totals[broker]
				fmt.Fprintf(w, "%s, %s: %d runs, %d held, %.0f minutes; %d records, %d runs of handlers, %d faults\n",
					name, broker, t.runs, t.held, t.minutes, t.records, t.calls, t.faults)
			}
			return nil
		case err != nil:
			return fmt.Errorf("%s, line %d: %w", name, line, err)
		}
		if rep.Minutes == 0 { // not made
			continue
		}
		t := totals[rep.Broker]
		if t == nil {
			t = &total{}
			totals[rep.Broker] = t
		}
		t.runs++
		if rep.Verdict == verdictHeld {
			t.held++
		}
		t.minutes += rep.Minutes
		t.records += rep.Records
		t.calls += rep.Runs
		for _, n := range rep.Faults {
			t.faults += n
		}
	}
}
