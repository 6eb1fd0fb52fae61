package operate

import (
	"fmt"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/selection"
)

// Letters that are near each other are read in one go, the largest runs first.
func TestNearOnes_TheLongestRunFirst(t *testing.T) {
	t.Parallel()
	runs := nearOnes([]selection.Place{{Offset: 500}, {Partition: 1, Offset: 1}, {Offset: 2}, {Partition: 1, Offset: 1 + glanceGap}, {Partition: 1, Offset: 2 + 2*glanceGap}})
	if got, want := fmt.Sprint(runs), "[[{1 1} {1 51}] [{0 2}] [{0 500}] [{1 102}]]"; got != want {
		t.Errorf("the runs are %s, want %s", got, want)
	}
	if nearOnes(nil) != nil {
		t.Error("no letters have runs")
	}
}
