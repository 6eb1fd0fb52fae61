package chaos

import (
	"os"
	"strings"
	"testing"
)

// docs/chaos.md lists the faults.
func TestFaults_AreInTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Faults() {
		if !strings.Contains(string(page), "\n| `"+name+"` |") {
			t.Errorf("docs/chaos.md lacks the fault %s", name)
		}
	}
}
