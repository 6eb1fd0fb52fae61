package dlq

// A record of a ledger, of any kind.

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// LedgerRecord is a record of a ledger: an [Entry] about a letter, a record of a redrive run, a
// consumer's discard report about a letter that a run redrove, or a consumer's note of a discarded
// record (see [DiscardNote]).
type LedgerRecord struct {
	// Record is the record as it was read. It keeps the whole fetch that it came with in memory.
	Record *kgo.Record
	// Run is the key of a run's record or of a discard report, without "run/". It is empty for an
	// entry.
	Run string
	// Letter is the offset of the letter that an entry or a discard report is about, in the
	// partition of the record; -1 if the key names none.
	Letter int64
	// Entry is the content of an entry or a discard report. A record without a value gives the zero
	// Entry, which revokes the one before it.
	Entry Entry
	// Note is the content of a note of a discarded record, if the record has a value.
	Note *DiscardNote
	// Err is an [*EntryError] if the record is none of the four.
	Err error
}

// ParseLedgerRecord parses a record of a ledger. It never returns nil; errors are in Err.
func ParseLedgerRecord(r *kgo.Record) *LedgerRecord {
	n := &LedgerRecord{Record: r, Letter: -1}
	if isDiscardNote(r) {
		n.Note, n.Err = readDiscardNote(r)
		return n
	}
	name, ok := strings.CutPrefix(string(r.Key), ledgerrecord.RunKey)
	if !ok || name == "" {
		n.Letter, n.Entry, n.Err = readEntry(r)
		return n
	}
	run, letter, ok := ledgerrecord.DiscardReportOf(name)
	n.Run, n.Letter = name, letter
	if ok && r.Value != nil {
		n.Entry, n.Err = readDiscardReport(r, run)
	}
	return n
}

// resolvedAt returns the Unix second at which the letter of an entry was resolved, by the earlier
// of the broker's clock and the writer's. If a clock that is ahead counted, a letter that failed
// later would be taken for a copy.
func (n *LedgerRecord) resolvedAt() uint32 {
	at := n.Entry.At
	if written := n.Record.Timestamp; written.Before(at) {
		at = written
	}
	if since := n.Entry.Since; !since.IsZero() && since.Before(n.Entry.At) {
		// the distance holds, even if the writer's clock was wrong
		at = at.Add(-n.Entry.At.Sub(since))
	}
	return seconds(at)
}

// discardReport returns the discard report whose content is the entry's: see
// [ledgerrecord.DiscardReportKey].
func discardReport(e *Entry, ledger string, partition int32, offset int64) *kgo.Record {
	r := e.Record(ledger, partition, offset)
	r.Key = ledgerrecord.DiscardReportKey(e.Run, offset)
	return r
}

func readDiscardReport(r *kgo.Record, run string) (Entry, error) {
	e, err := parseEntry(r.Value)
	if err == nil && (e.State != Discarded || e.Run != run) {
		err = fmt.Errorf("it is %s, of run %.40q", e.State, e.Run)
	}
	if err != nil {
		return Entry{}, newEntryError(r, fmt.Errorf("%w: %w", errDiscardReport, err))
	}
	return e, nil
}
