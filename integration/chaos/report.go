package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/integration/chaos/internal/check"
)

// Report is what a run found.
type Report struct {
	Commit  string         `json:"commit"`
	Seed    uint64         `json:"seed"`
	Broker  string         `json:"broker"`
	Minutes float64        `json:"minutes"`
	Records int            `json:"records"`
	Runs    int            `json:"runs"`   // of handlers
	Faults  map[string]int `json:"faults"` // by kind
	// Counted are things that may happen in a crash or an outage, such as repetitions.
	Counted map[string]int `json:"counted"`
	// Excluded are the records and members that a rule would have complained about, if a fault of
	// the run did not explain it, by the explanation.
	Excluded map[string]int `json:"excluded"`
	// Flat says how the sizes of the process that lived longest changed.
	Flat *Flat `json:"flat,omitempty"`
	// Lateness says whether the machine had time for the run.
	Lateness *Lateness `json:"lateness,omitempty"`
	// Verdict is "held", or "broken" followed by the rules that were broken, with their numbers.
	Verdict string `json:"verdict"`

	// Broken are the violations.
	Broken []Violation `json:"-"`
	// Dir has journals, logs and data; empty if they were removed.
	Dir string `json:"-"`
}

// verdictHeld is the verdict on a run that broke no promise.
const verdictHeld = "held"

// Violation is a promise that was broken, for one record or partition.
type Violation struct {
	Rule      string
	Record    int64 // its number in the run, -1 for none
	Topic     string
	Partition int32
	Offset    int64
	Text      string
	Lines     []string // of journals
}

func (v Violation) String() string {
	what := fmt.Sprintf("%s: %s/%d/%d", v.Rule, v.Topic, v.Partition, v.Offset)
	if v.Record >= 0 {
		what += fmt.Sprintf(", record %d", v.Record)
	}
	return strings.Join(append([]string{what + ": " + v.Text}, v.Lines...), "\n    ")
}

// Flat says how the sizes of a process changed from the first third of its life to the last. They
// are the least ones of their thirds: lanes and parked records come and go, what leaks stays.
type Flat struct {
	Member     string   `json:"member"`
	Minutes    float64  `json:"minutes"`
	Goroutines [2]int64 `json:"goroutines"`
	Bytes      [2]int64 `json:"live_bytes"`
}

func (l *Flat) String() string { return (*check.Flat)(l).String() }

// newReport returns the report on what the checker found.
func newReport(cfg Config, res *check.Result) *Report {
	rep := &Report{
		Commit: cfg.Commit, Seed: cfg.Seed, Broker: cfg.Broker, Records: res.Records, Runs: res.Runs,
		Counted: res.Counted, Excluded: res.Excluded, Flat: (*Flat)(res.Flat), Verdict: verdictHeld,
	}
	byRule := map[string]int{}
	for _, f := range res.Broken {
		rep.Broken = append(rep.Broken, Violation(f))
		byRule[f.Rule]++
	}
	if len(byRule) > 0 {
		rep.Verdict = "broken"
		for _, name := range slices.Sorted(maps.Keys(byRule)) {
			rep.Verdict += fmt.Sprintf(" %s:%d", name, byRule[name])
		}
	}
	return rep
}

// append adds the run's line to the file.
func (r *Report) append(name string) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// shownViolations bounds the violations of a rule that print shows.
const shownViolations = 5

// print writes the report for people.
func (r *Report) print(w io.Writer) {
	shown := map[string]int{}
	for _, v := range r.Broken {
		if shown[v.Rule]++; shown[v.Rule] <= shownViolations {
			fmt.Fprintln(w, v)
		}
	}
	fmt.Fprintf(w, "seed %d: %d records, %d runs of handlers, faults %v, counted %v\n", r.Seed, r.Records, r.Runs, r.Faults, r.Counted)
	fmt.Fprintf(w, "excluded, since a fault explains it: %v\n", r.Excluded)
	if r.Flat != nil {
		fmt.Fprintln(w, r.Flat)
	}
	if r.Lateness != nil {
		fmt.Fprintln(w, r.Lateness)
	}
	fmt.Fprintln(w, r.Verdict)
	if r.Dir != "" {
		fmt.Fprintln(w, "journals, logs and data:", r.Dir)
	}
}

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
