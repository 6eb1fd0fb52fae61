package operate

import (
	"strings"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/failure"
)

// mostReason bounds a reason, in bytes, as packages dlq and redrive do. The schema counts
// characters.
const mostReason = 4096

// reasonOf returns a reason without the space around it. Its problem says that nothing was done.
func reasonOf(why string, required bool) (string, error) {
	why = strings.TrimSpace(why)
	switch {
	case why == "" && required:
		return "", failure.NewProblem(api.InvalidRequest, "why: the reason is missing: nothing was done; ledgers record it")
	case len(why) > mostReason:
		return "", failure.NewProblem(api.InvalidRequest, "why: the reason has %d bytes, and %d are the most: nothing was done; name a ticket", len(why), mostReason)
	}
	return why, nil
}
