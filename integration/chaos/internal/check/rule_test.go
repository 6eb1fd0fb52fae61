package check

import (
	"os"
	"strings"
	"testing"
)

// docs/chaos.md lists the rules.
func TestRules_AreInTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !strings.Contains(string(page), "\n| `"+r.name+"` |") {
			t.Errorf("docs/chaos.md lacks the rule %s", r.name)
		}
	}
}
