package chaos

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
