package number

import "testing"

// Numbers read the same wherever people see them, in the console and in messages.
func TestFormat_HasSeparators(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1902: "1,902", 1234567: "1,234,567", -1000: "-1,000", -1 << 63: "-9,223,372,036,854,775,808"} {
		if got := Format(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestOf_HasTheNoun(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 letters", 1: "1 letter", 2114: "2,114 letters"} {
		if got := Of(n, "letter"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
