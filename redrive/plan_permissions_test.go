package redrive

import (
	"slices"
	"testing"
)

// A value that was omitted from a letter is read at its original position.
func TestPlan_NeedsToReadOmittedValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target Target
		toTier bool
		want   []string
	}{
		"letters that go to a tier":        {toTier: true, want: []string{"READ"}},
		"letters that go back all the way": {target: Target{Topic: "orders"}, want: []string{"DESCRIBE_CONFIGS", "READ", "WRITE"}},
		"letters that go elsewhere":        {target: Target{Topic: "replay"}, want: []string{"READ"}},
	} {
		p := &Plan{topics: &topics{dlq: "orders.dlq", source: "orders", ledger: "orders.dlq.ledger"}, toTier: c.toTier, elsewhere: map[string]bool{"orders": true}}
		p.Selection.Target = c.target
		if got := p.permissions(nil)["orders"]; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v on the source, want %v", name, got, c.want)
		}
	}
}
