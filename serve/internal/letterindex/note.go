package letterindex

import (
	"bytes"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// notesPrefix begins the names of the servers' records in a ledger. The ledger takes them for
// records of a run that does not exist, as every version of siding does.
const notesPrefix = "serve/"

// Note returns a record by which servers inform each other about the topic, to be written to the
// ledger. The last one of a name counts, and one without a value deletes it.
func (b *Index) Note(name string, value []byte) *kgo.Record {
	return ledgerrecord.Run(b.ledgerTopic, notesPrefix+name, value)
}

// Noted returns the last note of a name that was read; nil if there is none.
func (b *Index) Noted(name string) []byte {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return bytes.Clone(b.notes[name])
}

// Notes returns the notes whose names begin with a prefix, by the rest of their names.
func (b *Index) Notes(prefix string) map[string][]byte {
	b.mu.RLock()
	defer b.mu.RUnlock()
	all := map[string][]byte{}
	for name, value := range b.notes {
		if rest, ok := strings.CutPrefix(name, prefix); ok && value != nil {
			all[rest] = bytes.Clone(value)
		}
	}
	return all
}
