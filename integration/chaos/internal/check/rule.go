package check

import (
	"context"
)

// rule is a promise that the checker holds a run to.
type rule struct {
	name  string
	check func(*evidence, *findings)
}

// rules are all of them. A new promise is a new line here.
var rules = []rule{
	{"conserved", conserved},
	{"committed", committedRule},
	{"rewound", rewound},
	{"repeated", repeated},
	{"order", ordered},
	{"early", early},
	{"attempts", attemptsRule},
	{"headers", headersRule},
	{"stuck", stuck},
	{"stalled", stalled},
	{"prompt", prompt},
	{"metrics", metricsRule},
	{"ledger", ledgerRule},
	{"died", diedRule},
	{"ended", endedRule},
	{"crash-loop", crashLoop},
	{"outage", outageRule},
	{"lanes", lanesRule},
	{"leaks", leaksRule},
	{"flat", flat},
}

// Result is what the rules found in a run.
type Result struct {
	Records, Runs     int // of the run, and of handlers
	Counted, Excluded map[string]int
	Flat              *Flat // of the process that lived longest
	Broken            []Finding
}

// Judge reads a run, and applies all rules to it.
func Judge(ctx context.Context, in Input) (*Result, error) {
	ev, err := read(ctx, in)
	if err != nil {
		return nil, err
	}
	res := &Result{Counted: map[string]int{}, Excluded: map[string]int{}, Flat: longest(ev)}
	for _, r := range ev.records() {
		res.Records++
		res.Runs += len(r.runs)
	}
	for _, r := range rules {
		found := findings{rule: r.name, counted: res.Counted, excluded: res.Excluded}
		r.check(ev, &found)
		res.Broken = append(res.Broken, found.broken...)
	}
	return res, nil
}
