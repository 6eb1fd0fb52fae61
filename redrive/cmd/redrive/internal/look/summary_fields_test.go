package look

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

func TestFailureFields_FitTheTerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class string
		fit   clitest.Fit
	}{
		"a class":        {"payment.Declined", clitest.Fit{Needs: []string{"COUNT", "CLASS", "FINGERPRINT", "LAST", "SHOW", "SAMPLE"}, Shows: "3649751aadbf4e23"}},
		"a long class":   {"java.lang.IllegalStateException", clitest.Fit{Needs: []string{"COUNT", "CLASS", "LAST", "SHOW", "SAMPLE"}, Shows: "java.lang.IllegalStateException"}},
		"a longer class": {strings.Repeat("com.example.", 10), clitest.Fit{Needs: []string{"COUNT", "CLASS", "LAST", "SHOW", "SAMPLE"}, Shows: "11:1234567"}},
	} {
		c.fit.Always = []string{"COUNT", "CLASS", "SHOW"}
		c.fit.Check(t, name, failureFields(&dlq.Summary{})(dlq.Failure{
			Class: c.class, Fingerprint: "3649751aadbf4e23", Count: 123456, First: clitest.Noon, Last: clitest.Noon, Partition: 11, Offset: 1234567, Sample: long,
		}))
	}
}
