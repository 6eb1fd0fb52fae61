package trace

// Leaks are what a member told of its records.
type Leaks struct {
	Seen  map[string]int // texts that were looked at, by their kinds
	Found []string
}

// LeakKinds are the kinds of texts that are looked at.
var LeakKinds = []string{"log", "span", "metric"}
