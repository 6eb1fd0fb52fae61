package run

import (
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

func TestFollowedError_IsThatOfTheRun(t *testing.T) {
	t.Parallel()
	tl, _ := clitest.NewTool(nil)
	for _, c := range []struct {
		o       redrive.Outcome
		gone    bool
		code    int
		message string
	}{
		{redrive.Outcome{State: redrive.Done}, false, cli.ExitDone, ""},
		{redrive.Outcome{State: redrive.Aborted, Cause: "letter a failed again"}, false, cli.ExitFailedAgain, "orders.dlq/r-1 aborted: letter a failed again"},
		{redrive.Outcome{State: redrive.Aborted, Cause: "aborted by ada on laptop"}, false, cli.ExitError, "orders.dlq/r-1 ended: aborted by ada on laptop"},
		{redrive.Outcome{State: redrive.Aborted, Cause: redrive.ErrTopicRecreated.Error()}, false, cli.ExitError, "orders.dlq/r-1 ended: "},
		{redrive.Outcome{State: redrive.Sending, Stopped: clitest.Noon}, false, cli.ExitError, "orders.dlq/r-1 was stopped"},
		{redrive.Outcome{State: redrive.Sending, Owner: "ada on laptop", Heartbeat: clitest.Noon.Add(-time.Hour)}, true, cli.ExitError, "orders.dlq/r-1 has no process: ada on laptop was last heard from 1h ago"},
	} {
		c.o.Topic, c.o.ID = "orders.dlq", "r-1"
		err := followedError(tl, c.o, c.gone)
		if got := cli.ExitCode(err); got != c.code || c.message != "" && !strings.HasPrefix(err.Error(), c.message) {
			t.Errorf("%+v: exit code %d, %v; want %d, %s", c.o, got, err, c.code, c.message)
		}
	}
}
