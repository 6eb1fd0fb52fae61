package console

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/api"
)

// The words of letters: what became of them, and why they are letters.

// isOpen reports whether a letter in a state is open.
func isOpen(state string) bool { return !dlq.State(state).Resolves() }

// canReopen reports whether a letter can be reopened: if it was brought back, as far as the state
// tells.
func canReopen(state string) bool {
	return dlq.State(state).Discards() || dlq.State(state) == dlq.Redriven
}

// stateWords are what states of letters mean.
var stateWords = map[dlq.State]string{
	"":              "open",
	dlq.Redriven:    "brought back, outcome pending",
	dlq.Succeeded:   "succeeded after it was brought back",
	dlq.Failed:      "failed again after it was brought back: there is a newer letter",
	dlq.Discarded:   "discarded",
	dlq.Compensated: "discarded: a compensating action resolved it",
	dlq.Reopened:    "open again: somebody reopened it",
	dlq.Expired:     "expired: retention deleted it while it was open",
	dlq.Duplicate:   "a copy of an earlier letter",
	dlq.Unknown:     "open: it was brought back, and its outcome cannot be known",
	dlq.Unfollowed:  "brought back to a topic whose consumers report no outcome",
}

// reasonWords are why a record became a dead letter.
var reasonWords = map[headers.Reason]string{
	headers.ReasonTerminal:           "a retry does not repair this failure",
	headers.ReasonExhausted:          "its attempts were used up",
	headers.ReasonExpired:            "its time for retries was over",
	headers.ReasonHeld:               "it waited behind a record of its key that was dead-lettered",
	headers.ReasonDecode:             "its payload could not be parsed",
	headers.ReasonMalformed:          "its headers on a retry topic were invalid",
	headers.ReasonPanic:              "the handler, or its decoder, panicked",
	headers.ReasonCrashLoop:          "the process died several times while running it",
	headers.ReasonTooLarge:           "with its headers it did not fit into a retry topic",
	headers.ReasonUnroutable:         "no handler is registered for it",
	headers.ReasonUnsupportedVersion: "its schema has a version that the service does not know yet",
}

// letterPhrases returns in words what a letter is.
func letterPhrases(l *api.LetterDetail, now time.Time) []phrase {
	state, ok := stateWords[dlq.State(l.State)]
	if !ok {
		state = l.State
	}
	all := []phrase{{Text: state, Red: isOpen(l.State)}, {Text: nameOf(l.Class)}}
	if words := reasonWords[headers.Reason(l.Reason)]; words != "" {
		all = append(all, phrase{Text: words})
	}
	return append(all, phrase{Text: "dead-lettered", At: momentOf(l.EnteredAt, now)})
}

// missingWords says why attempts of a letter with a reason are not in its history.
func missingWords(reason string) string {
	if reason == string(headers.ReasonCrashLoop) {
		return "the process died, or it is no longer in the history"
	}
	return "no longer in the history"
}

// place says where a record is.
func place(p api.Position) string {
	switch {
	case p.Partition < 0: // another program does not say it
		return visible(p.Topic)
	case p.Offset < 0:
		return fmt.Sprintf("%s, partition %d", visible(p.Topic), p.Partition)
	}
	return fmt.Sprintf("%s, partition %d, offset %d", visible(p.Topic), p.Partition, p.Offset)
}
