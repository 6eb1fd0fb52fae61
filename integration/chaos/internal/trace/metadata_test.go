package trace

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The format is the consumer's: its golden file holds it.
func TestFinishedAbove_ReadsTheConsumersFormat(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("../../../../consumer/internal/offsets/testdata/metadata_1.golden")
	must(t, err)
	spans := func(of ...int64) (all []int64) {
		for i := 0; i < len(of); i += 2 {
			for at := of[i]; at <= of[i+1]; at++ {
				all = append(all, at)
			}
		}
		return all
	}
	want := map[string][]int64{
		"nothing finished":  nil,
		"one":               {101},
		"a bitmap":          {101, 103, 105, 106, 107, 108, 110, 112, 114},
		"run lengths":       spans(103, 250, 260, 900),
		"from the floor on": spans(100, 200),
	}
	for line := range strings.Lines(string(golden)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if of, ok := want[name]; ok && !slices.Equal(FinishedAbove(text, 100), of) {
			t.Errorf("%s: %q has %v, want %v", name, text, FinishedAbove(text, 100), of)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("the golden file lacks %v", want)
	}
	if got := FinishedAbove("somebody else's", 100); got != nil {
		t.Errorf("foreign metadata has %v", got)
	}
}
