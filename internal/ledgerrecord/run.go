package ledgerrecord

import (
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// RunKey begins the keys of a run's records.
const RunKey = "run/"

// discardReportKey stands between the run and the offset in the key of a discard report.
const discardReportKey = "/discarded/"

// Run returns a record of a run. name is the run's id for its state, and "id/…" for others; for
// discard reports see [DiscardReportKey]. A nil value deletes the record before it. All records of
// runs are on partition 0.
func Run(ledger, name string, value []byte) *kgo.Record {
	return &kgo.Record{Topic: ledger, Key: []byte(RunKey + name), Value: value}
}

// DiscardReportKey returns the key of the record by which a consumer reports that it discarded a
// letter that a run redrove. Its value is that of an entry about the letter, of that run, and its
// partition the letter's. It is no entry, and has its own key: a consumer knows only the headers of
// a record, which any producer can forge, and a compacted topic keeps the last record of a key. So
// a false report cannot replace a true entry. A ledger counts the report if the letter's last entry
// says that the same run redrove it. A record without a value revokes the report before it.
func DiscardReportKey(run string, offset int64) []byte {
	return strconv.AppendInt([]byte(RunKey+run+discardReportKey), offset, 10)
}

// DiscardReportOf returns what a discard report with the key [RunKey]+name is about. ok is false if
// it is no such key. No run has other records under keys of that form.
func DiscardReportOf(name string) (run string, letter int64, ok bool) {
	at := strings.LastIndex(name, discardReportKey)
	if at < 1 {
		return "", -1, false
	}
	letter, ok = ParseOffset([]byte(name[at+len(discardReportKey):]))
	return name[:at], letter, ok
}

// ParseOffset parses an offset in its only written form; -1 if it has another form. That would be
// another key, and compaction would keep both.
func ParseOffset(key []byte) (offset int64, ok bool) {
	if len(key) == 0 || key[0] < '0' || key[0] > '9' || key[0] == '0' && len(key) > 1 {
		return -1, false
	}
	offset, err := strconv.ParseInt(string(key), 10, 64)
	if err != nil {
		return -1, false
	}
	return offset, true
}
