package operate

import (
	"testing"

	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// The overview named the class of the largest fingerprint: five letters that failed in one way came
// before nine of a class that fail in three.
func TestTopClass_IsThatOfTheMostLetters(t *testing.T) {
	t.Parallel()
	groups := []letterindex.Group{{Class: "one", Fingerprint: "a", Open: 5}, {Class: "many", Fingerprint: "a", Open: 3}, {Class: "many", Fingerprint: "b", Open: 3}, {Class: "many", Fingerprint: "c", Open: 3}}
	if got := topClass(groups); got != "many" {
		t.Errorf("the top class is %q, want many", got)
	}
	if got := topClass([]letterindex.Group{{Class: "b", Open: 5}, {Class: "a", Open: 5}}); got != "a" {
		t.Errorf("of two the top class is %q, want a", got)
	}
	if got := topClass(nil); got != "" {
		t.Errorf("of none the top class is %q", got)
	}
}
