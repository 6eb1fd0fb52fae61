package dlq

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// LedgerRecord is a record of a ledger: an [Entry] about a letter, something that a
// redrive run keeps about itself, or what a consumer says of a letter that a run
// brought back: see [LedgerRecord.DiscardReport].
type LedgerRecord struct {
	// Record is the note as it stands there. One that is kept keeps the whole
	// fetch in memory that it came with.
	Record *kgo.Record
	// Run is the key of what a run keeps, or of a discard report, without "run/"; empty
	// for an entry.
	Run string
	// Letter is the offset of the letter that an entry or a discard report is about, in
	// the partition of the record; -1 where the key names none.
	Letter int64
	// Entry is what it says. It is zero where it was taken back, by a record
	// without a value: of an entry, the letter is open again.
	Entry Entry
	// Err says that the record is no entry, as an [*EntryError].
	Err error
}

// RunRecord returns the record that keeps something about a run in a ledger: its
// state under the run's id, anything else under "id/…", but for [Entry.DiscardReport]. A
// nil value takes it away. All of them are on partition 0.
func RunRecord(ledger, name string, value []byte) *kgo.Record {
	return &kgo.Record{Topic: ledger, Key: []byte(runKey + name), Value: value}
}

// ParseLedgerRecord reads a record of a ledger.
func ParseLedgerRecord(r *kgo.Record) *LedgerRecord {
	if name, ok := strings.CutPrefix(string(r.Key), runKey); ok && name != "" {
		n := &LedgerRecord{Record: r, Run: name, Letter: -1}
		n.parseDiscardReport()
		return n
	}
	n := &LedgerRecord{Record: r}
	n.Letter, n.Entry, n.Err = readEntry(r)
	return n
}

// resolvedAt is the Unix second since when the letter of an entry is settled. The broker's clock
// and the writer's both say so: where one of them is ahead, a letter that failed since would be
// taken for a copy.
func (n *LedgerRecord) resolvedAt() uint32 {
	at := n.Entry.At
	if written := n.Record.Timestamp; written.Before(at) {
		at = written
	}
	if since := n.Entry.Since; !since.IsZero() && since.Before(n.Entry.At) {
		at = at.Add(-n.Entry.At.Sub(since)) // so much before, whatever the writer's clock said
	}
	return seconds(at)
}

// parseDiscardReport reads what a consumer says, if the key is of that form. Whatever else is in
// the run's part of the key, no run keeps anything under such a one.
func (n *LedgerRecord) parseDiscardReport() {
	at := strings.LastIndex(n.Run, discardReportKey)
	if at < 1 {
		return
	}
	offset, ok := parseOffset([]byte(n.Run[at+len(discardReportKey):]))
	if !ok {
		return
	}
	n.Letter = offset
	r := n.Record
	if r.Value == nil {
		return
	}
	e, err := parseEntry(r.Value)
	if err == nil && (e.State != Discarded || e.Run != n.Run[:at]) {
		err = fmt.Errorf("it is %s, of run %.40q", e.State, e.Run)
	}
	if err != nil {
		n.Err = newEntryError(r, fmt.Errorf("%w: %w", errDiscardReport, err))
		return
	}
	n.Entry = e
}

// DiscardReport reports whether a note is what [Entry.DiscardReport] returns, right or broken,
// and of which run it is.
func (n *LedgerRecord) DiscardReport() (run string, ok bool) {
	at := strings.LastIndex(n.Run, discardReportKey)
	if at < 1 || n.Letter < 0 {
		return "", false
	}
	return n.Run[:at], true
}
