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

// hearsayKey stands between the run and the offset in the key of hearsay.
const hearsayKey = "/discarded/"

// errHearsay is about what a consumer should have said otherwise.
var errHearsay = errors.New("no consumer says that of a letter that a run brought back")

// Hearsay returns the record by which a consumer says that it discarded a letter
// which the run e.Run brought back. It is no entry, and has a key of its own,
// "run/<id>/discarded/<offset>" on the letter's partition: a consumer knows no more
// than the headers of a record, which anyone can make up, and a compacted topic
// keeps the last record of a key only. So what is said does not count cannot take
// away what does. A [Ledger] believes it of a letter whose last entry is that this
// very run brought it back.
//
// That of an entry without a state has no value, and takes back what was said.
func (e *Entry) Hearsay(ledger string, partition int32, offset int64) *kgo.Record {
	r := e.Record(ledger, partition, offset)
	r.Key = strconv.AppendInt([]byte(runKey+e.Run+hearsayKey), offset, 10)
	return r
}

// Hearsay reports whether a note is what [Entry.Hearsay] returns, right or broken,
// and of which run it is.
func (n *Note) Hearsay() (run string, ok bool) {
	at := strings.LastIndex(n.Run, hearsayKey)
	if at < 1 || n.Letter < 0 {
		return "", false
	}
	return n.Run[:at], true
}

// parseHearsay reads what a consumer says, if the key is of that form. Whatever else is in the run's part of the key, no run keeps
// anything under such a one.
func (n *Note) parseHearsay() {
	at := strings.LastIndex(n.Run, hearsayKey)
	if at < 1 {
		return
	}
	offset, ok := parseOffset([]byte(n.Run[at+len(hearsayKey):]))
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
			headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}, string(r.Key[:min(len(r.Key), 64)]), fmt.Errorf("%w: %w", errHearsay, err),
		}
		return
	}
	n.Entry = e
}

// hearsay is what consumers say of letters that a run brought back, and which run brought a letter back of which no more is known. It is
// believed where the two are the same. Else a record of another cluster, or of a topic that was deleted since, or one that somebody made
// up, would take a letter off the open ones that it has nothing to do with. Which of the two is read first does not matter: a consumer
// may be faster than the commit of the entry.
// See DESIGN.md, "Discard reports".
type hearsay struct {
	said, brought byRun
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

// maxHearsay is of how many runs anything is kept that consumers say; nobody has so many.
const maxHearsay = 1 << 16

// hear takes down what a consumer says, or says no longer. Of a record that is broken as well: compaction has taken the one before it.
func (l *Ledger) hear(run string, n *Note) {
	at := place{n.Record.Partition, n.Letter}
	if n.Entry.State != "" {
		if len(l.hearsay.said) < maxHearsay || l.hearsay.said[run] != nil {
			l.hearsay.said.add(run, at)
		}
		return
	}
	l.hearsay.said.remove(run, at)
	if f := l.fate(at.partition); l.hearsay.brought.has(run, at) && f.sets[fateOf(Discarded)].Has(at.offset) {
		f.set(at.offset, fateOf(Redriven))
	}
}

// bring takes down which run brought a letter back, if its last entry says that one did.
func (l *Ledger) bring(at place, e *Entry) {
	if e.State == Redriven && l.hearsay.brought.has(e.Run, at) {
		return
	}
	f := l.fate(at.partition)
	if f.sets[fateOf(Redriven)].Has(at.offset) || f.sets[fateOf(Discarded)].Has(at.offset) { // by the entry, or as it was believed
		for run := range l.hearsay.brought {
			l.hearsay.brought.remove(run, at)
		}
	}
	if e.State == Redriven && e.Run != "" {
		l.hearsay.brought.add(e.Run, at)
	}
}

// believe takes down what is so by the two.
func (l *Ledger) believe() {
	for run, said := range l.hearsay.said {
		for partition, brought := range l.hearsay.brought[run] {
			if said[partition] == nil {
				continue
			}
			for offset := range said[partition].All() {
				if brought.Has(offset) {
					l.fate(partition).set(offset, fateOf(Discarded))
				}
			}
		}
	}
}
