package dlq

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/offsetset"
)

// discardReportKey stands between the run and the offset in the key of hearsay.
const discardReportKey = "/discarded/"

// errDiscardReport is about what a consumer should have said otherwise.
var errDiscardReport = errors.New("no consumer says that of a letter that a run brought back")

// DiscardReport returns the record by which a consumer says that it discarded a letter
// which the run e.Run brought back. It is no entry, and has a key of its own,
// "run/<id>/discarded/<offset>" on the letter's partition: a consumer knows no more
// than the headers of a record, which anyone can make up, and a compacted topic
// keeps the last record of a key only. So what is said does not count cannot take
// away what does. A [Ledger] believes it of a letter whose last entry is that this
// very run brought it back.
//
// That of an entry without a state has no value, and takes back what was said.
func (e *Entry) DiscardReport(ledger string, partition int32, offset int64) *kgo.Record {
	r := e.Record(ledger, partition, offset)
	r.Key = strconv.AppendInt([]byte(runKey+e.Run+discardReportKey), offset, 10)
	return r
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

// parseDiscardReport reads what a consumer says, if the key is of that form. Whatever else is in the run's part of the key, no run keeps
// anything under such a one.
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
		n.Err = &EntryError{
			headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}, string(r.Key[:min(len(r.Key), 64)]), fmt.Errorf("%w: %w", errDiscardReport, err),
		}
		return
	}
	n.Entry = e
}

// discardReports is what consumers say of letters that a run brought back, and which run brought a letter back of which no more is known. It is
// believed where the two are the same. Else a record of another cluster, or of a topic that was deleted since, or one that somebody made
// up, would take a letter off the open ones that it has nothing to do with. Which of the two is read first does not matter: a consumer
// may be faster than the commit of the entry.
// See DESIGN.md, "Discard reports".
type discardReports struct {
	reported, redriven byRun
}

// byRun are letters by run and partition.
type byRun map[string]map[int32]*offsetset.Set

func (b byRun) add(run string, at place) {
	if b[run] == nil {
		b[strings.Clone(run)] = map[int32]*offsetset.Set{} // it is part of a record
	}
	if b[run][at.partition] == nil {
		b[run][at.partition] = &offsetset.Set{}
	}
	b[run][at.partition].Add(at.offset)
}

func (b byRun) remove(run string, at place) {
	s := b[run][at.partition]
	if s == nil {
		return
	}
	if s.Remove(at.offset); s.Len() > 0 {
		return
	}
	if delete(b[run], at.partition); len(b[run]) == 0 {
		delete(b, run)
	}
}

func (b byRun) has(run string, at place) bool {
	s := b[run][at.partition]
	return s != nil && s.Has(at.offset)
}

// maxDiscardReports is of how many runs anything is kept that consumers say; nobody has so many.
const maxDiscardReports = 1 << 16

// addReport takes down what a consumer says, or says no longer. Of a record that is broken as well: compaction has taken the one before it.
func (l *Ledger) addReport(run string, n *LedgerRecord) {
	at := place{n.Record.Partition, n.Letter}
	if n.Entry.State != "" {
		if len(l.reports.reported) < maxDiscardReports || l.reports.reported[run] != nil {
			l.reports.reported.add(run, at)
		}
		return
	}
	l.reports.reported.remove(run, at)
	if f := l.stateCodeOf(at.partition); l.reports.redriven.has(run, at) && f.sets[stateCode(Discarded)].Has(at.offset) {
		f.set(at.offset, stateCode(Redriven))
	}
}

// addRedriven takes down which run brought a letter back, if its last entry says that one did.
func (l *Ledger) addRedriven(at place, e *Entry) {
	if e.State == Redriven && l.reports.redriven.has(e.Run, at) {
		return
	}
	f := l.stateCodeOf(at.partition)
	if f.sets[stateCode(Redriven)].Has(at.offset) || f.sets[stateCode(Discarded)].Has(at.offset) { // by the entry, or as it was believed
		for run := range l.reports.redriven {
			l.reports.redriven.remove(run, at)
		}
	}
	if e.State == Redriven && e.Run != "" {
		l.reports.redriven.add(e.Run, at)
	}
}

// confirmReports takes down what is so by the two.
func (l *Ledger) confirmReports() {
	for run, said := range l.reports.reported {
		for partition, brought := range l.reports.redriven[run] {
			if said[partition] == nil {
				continue
			}
			for offset := range said[partition].All() {
				if brought.Has(offset) {
					l.stateCodeOf(partition).set(offset, stateCode(Discarded))
				}
			}
		}
	}
}
