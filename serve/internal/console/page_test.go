package console

import (
	"strings"
	"testing"
)

// Short names stay whole in a narrow column. Long ones break after punctuation and before capitals,
// and none of their parts is longer than a column is wide; what they contain stays text.
func TestWrappable_BreaksLongNamesAlone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "",
		"orders.dlq":             "orders.dlq",
		"20261127-022000-9d9bab": "20261127-022000-9d9bab",
		"no rate for region N2":  "no rate for region N2",
		"the first of java.util.concurrent.TimeoutException": "the first of java.|util.|concurrent.|Timeout|Exception",
		"settlement.eu-west-1.reconciliation.dlq":            "settlement.|eu-|west-|1.|reconciliation.|dlq",
		strings.Repeat("a", 40):                              strings.Repeat("a", 16) + "|" + strings.Repeat("a", 16) + "|" + strings.Repeat("a", 8),
		"<b>.<script>alert(1)</script>":                      "&lt;b&gt;.&lt;script&gt;aler|t(1)&lt;/|script&gt;",
		"a\u202eb":                                           "a⟨U+202E⟩b",
	} {
		if got := strings.ReplaceAll(string(wrappable(text)), "<wbr>", "|"); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
