package dlq

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Note is a record of a ledger: an [Entry] about a letter, or something that
// redrive keeps about a run.
type Note struct {
	Record *kgo.Record
	// Run is the name of what a run keeps, without "run/"; empty for an entry.
	Run string
	// Letter is the offset of the letter that an entry is about, in the
	// partition of the record.
	Letter int64
	// Entry is what it says. It is zero where the entry was taken back, by a
	// record without a value: the letter is open again.
	Entry Entry
	// Err says that the record is no entry, as an *EntryError; then nothing is
	// known about its letter.
	Err error
}

// runKey begins the keys of what a run keeps.
const runKey = "run/"

// RunRecord returns the record that keeps something about a run in a ledger. A nil value takes it away. All of them are on partition 0.
func RunRecord(ledger, name string, value []byte) *kgo.Record {
	return &kgo.Record{Topic: ledger, Key: []byte(runKey + name), Value: value}
}

func newNote(r *kgo.Record) *Note {
	n := &Note{Record: r}
	if name, ok := strings.CutPrefix(string(r.Key), runKey); ok {
		n.Run = name
		return n
	}
	n.Letter, n.Entry, n.Err = ParseEntry(r)
	return n
}

// ReadLedger yields what stands in a ledger, from the cursor on, up to where it
// ends when the read begins, or where the cursor ends. Of notes about the same
// letter or with the same name the last counts: a ledger is compacted some time
// later, or never. Otherwise it is like [Read].
func ReadLedger(ctx context.Context, ledger string, from Cursor, opts ...kgo.Opt) iter.Seq2[*Note, error] {
	return func(yield func(*Note, error) bool) {
		scan(ctx, ledger, from, opts, func(r *kgo.Record) bool {
			return yield(newNote(r), nil)
		}, func(err error) bool {
			return yield(nil, fmt.Errorf("dlq: read ledger %q: %w", ledger, err))
		})
	}
}
