package run

import (
	"fmt"
	"testing"
)

func TestTolerance_IsANumberAShareOrBoth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		number int
		share  float64
		ok     bool
	}{
		"0,10%": {-1, 0.1, true},
		"3":     {3, 0, true}, // the engine's default
		"25%":   {0, 0.25, true},
		"25%,3": {3, 0.25, true},
		"0%":    {0, -1, true}, // the engine's none
		"100%":  {0, 1, true},
		"":      {}, "3,4": {}, "1%,2%": {}, "-1": {}, "101%": {}, "-1%": {}, "NaN%": {}, "%": {}, "x": {}, "1.5": {}, "3,": {},
	} {
		number, share, err := tolerance(text)
		if (err == nil) != want.ok || number != want.number || share != want.share {
			t.Errorf("%q: %d, %g, %v; want %+v", text, number, share, err, want)
		}
	}
}

// A share of the traffic was a rate of 0.19998774569088648 records a second.
func TestRounded_HasThreeDigits(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]string{0.19998774569088648: "0.2", 20.3456: "20.3", 123456: "123000", leastRate: "1.16e-05"} {
		if got := fmt.Sprintf("%g", rounded(rate)); got != want {
			t.Errorf("%g is %s, want %s", rate, got, want)
		}
	}
}
