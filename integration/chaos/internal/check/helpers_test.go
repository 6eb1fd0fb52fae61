package check

import "testing"

// find applies a rule.
func find(check func(*evidence, *findings), ev *evidence) findings {
	f := findings{counted: map[string]int{}, excluded: map[string]int{}}
	check(ev, &f)
	return f
}

// wants checks how many violations were found.
func wants(t *testing.T, name string, f findings, want int) {
	t.Helper()
	if len(f.broken) != want {
		t.Errorf("%s: found %v, want %d", name, f.broken, want)
	}
}
