package main

import (
	"testing"
)

func TestCatalogue_ListOfLaterTrapsNamesRealTraps(t *testing.T) {
	t.Parallel()
	for n, with := range later {
		if !known(n) || with == "" {
			t.Errorf("trap %d is to come later, with %q", n, with)
		}
	}
	for n, what := range traps {
		if (what == "") != (n == 0) {
			t.Errorf("trap %d is %q", n, what)
		}
	}
}
