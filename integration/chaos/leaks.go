package chaos

// leaks are what a member told of its records.
type leaks struct {
	Seen  map[string]int // texts that were looked at, by their kinds
	Found []string
}

// leakKinds are the kinds of texts that are looked at.
var leakKinds = []string{"log", "span", "metric"}
