package root

// The advice to an operator after a refusal.

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/run"
)

// remedies is the options for each refusal. TOPIC stands for the dead-letter topic.
var remedies = map[redrive.Refusal]string{
	redrive.RefusedNothing:    "redrive summary TOPIC shows what is open",
	redrive.RefusedEdit:       "redrive show TOPIC P:OFFSET shows a letter's value; choose the letters that it fits by --class or --where",
	redrive.RefusedNoTier:     "--target names another topic",
	redrive.RefusedPartitions: "--target names another topic, redrive discard discards the letters",
	redrive.RefusedTarget:     "--target names another topic",
	redrive.RefusedNoMembers:  "--wait waits until they are there",
	redrive.RefusedCompacted:  "--force redrives them all the same",
	redrive.RefusedNaming:     "--retry-name sets how retry topics are named, --force redrives the letters all the same",
	redrive.RefusedTooOften:   "--max-redrives raises the limit, redrive discard discards the letters",
	redrive.RefusedRetention:  "omit --keep-timestamp, or choose younger letters by --since",
	redrive.RefusedLarge:      "choose fewer letters by --class or --since",
	redrive.RefusedMany:       "--offset P:OFFSET chooses one, as redrive list TOPIC prints them",
}

// remedy is what the user can do about an error, if anything is known.
func remedy(t *cli.Tool, err error) string {
	r, ok := errors.AsType[*redrive.RefusedError](err)
	if !ok {
		return ""
	}
	if r.Reason == redrive.RefusedUnfinished {
		name := r.Topic + "/" + r.Run.ID
		// it may be a colleague's, so no hint to end it
		if _, yes := run.ActiveOwner(t, *r.Run); yes {
			return fmt.Sprintf("redrive status %s --follow shows how far it is", name)
		}
		return fmt.Sprintf("redrive resume %s continues it, redrive abort %s ends it", name, name)
	}
	hint := strings.ReplaceAll(remedies[r.Reason], "TOPIC", r.Topic)
	if strings.Contains(r.Detail, "name a target topic") {
		hint += "; --target accepts letters that name no group"
	}
	return hint
}
