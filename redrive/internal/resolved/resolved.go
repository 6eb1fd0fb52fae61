// Package resolved says in words how letters were resolved that an operator named one by one, and
// what can be done about it. It is for refusals.
package resolved

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// most is how many letters are described: each takes a reading of its partition of the ledger.
const most = 3

// Describe describes the letters that a filter names one by one, up to three. It is empty if the
// filter names none in that way, or if they cannot be read.
func Describe(ctx context.Context, l *dlq.Ledger, f *dlq.Filter) string {
	if len(f.Ranges) == 0 || len(f.Ranges) > most {
		return ""
	}
	var all []string
	for _, r := range f.Ranges {
		if r.Until != r.From+1 {
			return ""
		}
		letter, notes, err := l.Find(ctx, r.Partition, r.From)
		switch {
		case errors.Is(err, dlq.ErrNoLetter):
			all = append(all, gone(err, notes))
		case err != nil:
			return ""
		default:
			all = append(all, Text(letter, notes))
		}
	}
	return strings.Join(all, "; ")
}

// gone returns what the ledger still has about a letter that is not in the topic any more. err is
// that of [dlq.Ledger.Find].
func gone(err error, notes []*dlq.LedgerRecord) string {
	text := strings.TrimPrefix(err.Error(), "dlq: find ")
	var e dlq.Entry
	for _, n := range notes {
		if n.Entry.State != "" {
			e = n.Entry
		}
	}
	if e.State == "" {
		return text
	}
	fate, _ := became(e.State, e)
	return fmt.Sprintf("%s; %s; its value is gone: only import can bring it back, as an open letter, from a file that prune --archive or export wrote", text, fate)
}

// Text returns what became of a letter: how, by whom, when and why, and what can be done. notes are
// the ledger's records about it, oldest first.
func Text(l *dlq.Letter, notes []*dlq.LedgerRecord) string {
	var e dlq.Entry
	for _, n := range notes {
		if n.Entry.State == l.State {
			e = n.Entry
		}
	}
	fate, remedy := became(l.State, e)
	switch {
	case fate == "" || l.State == dlq.Unknown:
		fate = "it is open"
	case l.State == dlq.Reopened:
		fate = "it is open: " + fate
	}
	return fmt.Sprintf("letter %s/%d/%d: %s%s", l.Record.Topic, l.Record.Partition, l.Record.Offset, fate, remedy)
}

// became returns what became of a letter in a state, by its entry, and what can be done about it
// while it is in its topic.
func became(state dlq.State, e dlq.Entry) (fate, remedy string) {
	by, at, why := cmp.Or(e.By, "somebody"), e.At.UTC().Format(time.RFC3339), ""
	if e.Why != "" {
		why = ": " + e.Why
	}
	run := fmt.Sprintf("run %s of %s", cmp.Or(e.Run, "?"), by)
	const reopen = "; reopen it first"
	switch state {
	case dlq.Discarded:
		if e.Run != "" { // the reason is the handler's error, which an operator may have to hide
			return fmt.Sprintf("its handler discarded it in run %s, at %s", e.Run, at), reopen
		}
		return fmt.Sprintf("%s discarded it at %s%s", by, at, why), reopen
	case dlq.Compensated:
		return fmt.Sprintf("%s recorded at %s that it is compensated%s", by, at, why), reopen
	case dlq.Reopened:
		return fmt.Sprintf("%s reopened it at %s%s", by, at, why), ""
	case dlq.Redriven:
		return fmt.Sprintf("%s sent it at %s, and its outcome is not known yet: the run's status tells when it is", run, at), ""
	case dlq.Succeeded:
		return fmt.Sprintf("%s redrove it, and it succeeded, as recorded at %s", run, at), "; to have it processed once more, export and import it"
	case dlq.Failed:
		return fmt.Sprintf("%s redrove it, and it failed again with %s, as recorded at %s; that failure is another letter", run, cmp.Or(e.Class, "?"), at), ""
	case dlq.Unfollowed:
		return fmt.Sprintf("%s sent it to %s at %s, where no outcome can be known", run, e.Target, at), "; to send it once more, export and import it"
	case dlq.Unknown:
		return fmt.Sprintf("%s redrove it, and its outcome could not be known, as recorded at %s", run, at), ""
	case dlq.Duplicate:
		if e.Target.Topic != "" {
			return fmt.Sprintf("it is a copy of %s", e.Target), "; choose that letter"
		}
		return "it is a copy of another letter, which decides what becomes of it", ""
	case dlq.Expired:
		return fmt.Sprintf("%s found at %s that it had expired", run, at), ""
	}
	return "", ""
}
