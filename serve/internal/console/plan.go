package console

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// planModel is a plan as a page shows it: a sentence, and tables for those who want to know more.
type planModel struct {
	Letters  int64
	Summary  []string
	Warnings []string
	// Dangers are why the number of letters has to be typed; none if it need not.
	Dangers []string
	Tables  []countTable
}

// countTable has numbers of letters by something.
type countTable struct {
	Name string
	Rows []countRow
}

type countRow struct {
	Name    string
	Letters int64
}

// manyLetters is the number of letters from which on a plan is dangerous.
const manyLetters = 10_000

func newPlanModel(p *api.Plan, t *operate.Topic, pace *api.Pace) *planModel {
	m := &planModel{Letters: p.Letters, Warnings: p.Warnings, Summary: planText(p, pace), Dangers: dangersOf(p, t, pace)}
	for _, table := range []struct {
		name string
		of   map[string]int64
	}{{"class", p.ByClass}, {"group", p.ByGroup}, {"target", p.Targets}, {"partition", p.ByPartition}, {"reason for which it stays", p.Skipped}} {
		if len(table.of) > 0 {
			m.Tables = append(m.Tables, countTable{table.name, rowsOf(table.of)})
		}
	}
	if t.Run != "" {
		m.Warnings = append(m.Warnings, "run "+t.Run+" is not finished, and a topic has one at a time")
	}
	return m
}

// mostRows bounds the rows of a table of numbers.
const mostRows = 50

// rowsOf returns numbers by name, the largest first.
func rowsOf(of map[string]int64) (rows []countRow) {
	for name, n := range of {
		rows = append(rows, countRow{name, n})
	}
	slices.SortFunc(rows, func(a, b countRow) int {
		return cmp.Or(cmp.Compare(b.Letters, a.Letters), strings.Compare(a.Name, b.Name))
	})
	if len(rows) > mostRows {
		rest := countRow{Name: number.Of(int64(len(rows)-mostRows), "other")}
		for _, r := range rows[mostRows:] {
			rest.Letters += r.Letters
		}
		rows = append(rows[:mostRows], rest)
	}
	return rows
}

// sortTables orders tables by their names.
func sortTables(all []countTable) {
	slices.SortFunc(all, func(a, b countTable) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
}

// planText returns in words what a plan does.
func planText(p *api.Plan, pace *api.Pace) []string {
	if p.Letters == 0 {
		return []string{"Sends nothing: no open letter is selected that may be sent."}
	}
	sends := "Sends " + number.Of(p.Letters, "letter") + " to " + namesOf(p.Targets)
	switch {
	case pace.Rate < 0:
		sends += " without a limit of the rate."
	default:
		sends += fmt.Sprintf(" at %s/s: %s.", decimal(rateOr(pace.Rate)), span(time.Duration(p.SendingMs)*time.Millisecond))
	}
	says := []string{sends}
	switch len(p.SeenBy) {
	case 0:
		says = append(says, "No group is known that reads them.")
	case 1:
		says = append(says, "Only group "+p.SeenBy[0]+" sees them.")
	default:
		says = append(says, number.Of(int64(len(p.SeenBy)), "group")+" see them: "+list(p.SeenBy)+".")
	}
	switch {
	case pace.Canary < 0:
		says = append(says, "None goes first.")
	case p.Letters > max(int64(pace.Canary), 1):
		says = append(says, canaryText(max(int64(pace.Canary), 1)))
	}
	return append(says, stopsWhen(p, pace))
}

func canaryText(n int64) string {
	if n == 1 {
		return "One letter goes first, and the others wait for its outcome."
	}
	return number.Of(n, "letter") + " go first, and the others wait for their outcomes."
}

// mostNamed bounds the names in a sentence.
const mostNamed = 3

// namesOf returns the names of a table in a sentence.
func namesOf(of map[string]int64) string {
	var names []string
	for _, r := range rowsOf(of) {
		names = append(names, r.Name)
	}
	if more := len(names) - mostNamed; more > 1 {
		names = append(names[:mostNamed], number.Format(int64(more))+" more")
	}
	return list(names)
}

func stopsWhen(p *api.Plan, pace *api.Pace) string {
	classes := slices.Sorted(maps.Keys(p.ByClass))
	what := "any of its classes"
	if len(classes) <= mostNamed {
		for i := range classes {
			classes[i] = nameOf(classes[i])
		}
		what = strings.Join(classes, " or ")
	}
	if pace.Tolerate > 0 {
		return fmt.Sprintf("Stops when %s appears more than %s.", what, number.Of(int64(pace.Tolerate), "time"))
	}
	return fmt.Sprintf("Stops when %s appears again.", what)
}

// dangersOf returns why the operator should look twice.
func dangersOf(p *api.Plan, t *operate.Topic, pace *api.Pace) (why []string) {
	if len(p.Warnings) > 0 {
		why = append(why, "there are warnings")
	}
	if len(p.SeenBy) > 1 {
		why = append(why, "more than one group sees the letters")
	}
	if t.Criticality == "critical" || t.ManualOnly {
		why = append(why, "the topic is one that matters most")
	}
	if p.Letters >= manyLetters {
		why = append(why, "there are many letters")
	}
	if pace.Rate < 0 || pace.Canary < 0 || pace.WindowMs < 0 {
		why = append(why, "a limit of the run is off")
	}
	return why
}

func rateOr(rate float64) float64 {
	if rate == 0 {
		return defaultRate
	}
	return rate
}

// defaultRate is that of package redrive.
const defaultRate = 50

// decimal returns a number with decimals where it is small, as in "0.25", "2.5" and "1,900".
func decimal(f float64) string {
	digits := 100.0
	switch {
	case f >= 10:
		return number.Format(int64(f + 0.5))
	case f >= 1:
		digits = 10
	}
	return strconv.FormatFloat(math.Round(digits*f)/digits, 'f', -1, 64)
}
