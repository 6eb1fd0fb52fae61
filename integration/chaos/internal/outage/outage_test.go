package outage

import (
	"fmt"
	"os"
	"testing"
)

func TestState_FailsAsItsFileSays(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/billing.outage"
	var s State
	const keys = 1000
	// fails returns how many keys fail in the first of two calls, and for how many both are alike.
	fails := func(mode Mode) (n, alike int) {
		s.Look(file)
		for i := range keys {
			key := fmt.Appendf(nil, "key-%d", i)
			first, second := s.Fails(key), s.Fails(key)
			if first != None && first != mode {
				t.Fatalf("a call failed by %q, want %q", first, mode)
			}
			if first == mode {
				n++
			}
			if first == second {
				alike++
			}
		}
		return n, alike
	}
	for _, test := range []struct {
		mode        Mode
		percent     int
		least, most int
		same        bool // each call for a key ends as the one before
	}{
		{All, 100, keys, keys, true},
		{Flaps, 100, keys, keys, true},
		{Tenants, 30, 200, 400, true},
		{Chance, 60, 500, 700, false},
	} {
		if err := Begin(file, test.mode, test.percent); err != nil {
			t.Fatal(err)
		}
		if n, alike := fails(test.mode); n < test.least || n > test.most || alike == keys != test.same {
			t.Errorf("%s, %d %%: %d of %d failed, %d of which alike twice", test.mode, test.percent, n, keys, alike)
		}
	}
	if err := os.WriteFile(file, []byte("tenants"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, _ := fails(Tenants); n != 0 {
		t.Errorf("half a file: %d failed, want none", n)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if n, _ := fails(All); n != 0 {
		t.Errorf("without a file: %d failed, want none", n)
	}
}
