package run

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

// A table that is too wide for its terminal does without some columns, and not without those that
// one acts by.
func TestRunFields_FitTheTerminal(t *testing.T) {
	t.Parallel()
	run := redrive.Outcome{Topic: "orders.dlq", ID: "20260102-150405-a1b2c3", State: redrive.Watching, By: "oncall", Why: strings.Repeat("long ", 30), Started: clitest.Noon, Ended: clitest.Noon}
	run.Counts = redrive.Counts{Selected: 123456, Sent: 123456, Succeeded: 123456, Failed: 123456, Pending: 123456}
	clitest.Fit{Needs: []string{"RUN", "STATE", "FAILED", "PENDING", "WHY"}, Always: []string{"RUN", "STATE", "WHY"}, Shows: run.ID}.Check(t, "runs", runFields(run, clitest.Noon))
}
