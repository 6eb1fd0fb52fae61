package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/redrive"
)

// remedy is what the command line has for a refusal.
func remedy(t *tool, err error) string {
	r, ok := errors.AsType[*redrive.RefusedError](err)
	if !ok {
		return ""
	}
	switch r.Reason {
	case redrive.RefusedUnfinished:
		run := r.Topic + "/" + r.Run.ID
		if _, yes := goesOn(t, *r.Run); yes { // nobody is asked to end what may be a colleague's
			return fmt.Sprintf("redrive status %s shows how far it is", run)
		}
		return fmt.Sprintf("redrive resume %s continues it, redrive abort %s ends it", run, run)
	case redrive.RefusedNothing:
		hint := fmt.Sprintf("redrive summary %s shows what is open", r.Topic)
		if strings.Contains(r.Detail, "name a target topic") {
			hint += "; --target accepts letters that name no group"
		}
		return hint
	case redrive.RefusedEdit:
		return fmt.Sprintf("redrive show %s P:OFFSET shows a letter's value; choose the letters that it fits by --class or --where", r.Topic)
	case redrive.RefusedNoTier:
		return "--target names another topic"
	case redrive.RefusedNoMembers:
		return "--wait waits until they are there"
	case redrive.RefusedCompacted:
		return "--force redrives them all the same"
	case redrive.RefusedNaming:
		return "--retry-name sets how retry topics are named, --force redrives the letters all the same"
	case redrive.RefusedTooOften:
		return "--max-redrives raises the limit, redrive discard discards the letters"
	case redrive.RefusedRetention:
		return "omit --keep-timestamp, or choose younger letters by --since"
	case redrive.RefusedPartitions, redrive.RefusedTarget:
		return "--target names another topic"
	case redrive.RefusedMany:
		return fmt.Sprintf("--offset P:OFFSET chooses one, as redrive list %s prints them", r.Topic)
	}
	return ""
}
