package main

import "testing"

// More partitions cost the bare program more, too. Only what siding adds to that counts.
func TestGrown_ComparesWithTheBareProgram(t *testing.T) {
	t.Parallel()
	of := func(cpu float64) report { return report{Records: 1e6, CPU: cpu} }
	round := map[string]report{"siding-many": of(6), "bare-many": of(4), "siding-few": of(2), "bare-few": of(1)}
	if got := grown("", "many", "few").of(round); got != 0.75 {
		t.Errorf("got %v, want 0.75", got)
	}
}
