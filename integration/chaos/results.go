package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// total sums the runs of a commit on one kind of broker.
type total struct {
	commit, broker string
	runs, held     int
	minutes        float64
	records, calls int
	faults         int
}

// printResults sums what a file of results has, by commit and kind of broker, in the order of their
// first runs. Runs that could not be made are left out.
func printResults(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var totals []*total
	dec := json.NewDecoder(f)
	for line := 1; ; line++ {
		var rep Report
		switch err := dec.Decode(&rep); {
		case errors.Is(err, io.EOF):
			for _, t := range totals {
				fmt.Fprintf(w, "%s, %s, %s: %d runs, %d held, %.0f minutes; %d records, %d runs of handlers, %d faults\n",
					name, t.commit, t.broker, t.runs, t.held, t.minutes, t.records, t.calls, t.faults)
			}
			return nil
		case err != nil:
			return fmt.Errorf("%s, line %d: %w", name, line, err)
		}
		if rep.Minutes == 0 { // not made
			continue
		}
		at := slices.IndexFunc(totals, func(t *total) bool { return t.commit == rep.Commit && t.broker == rep.Broker })
		if at < 0 {
			at = len(totals)
			totals = append(totals, &total{commit: rep.Commit, broker: rep.Broker})
		}
		t := totals[at]
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
