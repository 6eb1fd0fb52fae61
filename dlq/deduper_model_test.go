package dlq

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// lineageWorld is a partition of a dead-letter topic with its ledger, and the truth about the
// records: when each failed last, and when an operator or a run last acted on it. The clocks of
// hosts and of the operator may be wrong; those of brokers are right.
type lineageWorld struct {
	*rapid.T
	now      time.Time
	operator time.Duration // what the operator's clock is ahead
	failures map[int64]bool

	source  byte // the id of the source, which is recreated
	records map[record]*truth
	offsets map[byte]int64

	letters []*kgo.Record // that are there
	of      map[*kgo.Record]record
	failed  map[*kgo.Record]time.Time // when the record of a letter failed
	archive []*kgo.Record
	next    int64

	entries []*kgo.Record
	runs    []*modelRun
	known   *Ledger    // as the maker of a plan has read it
	plan    *modelPlan // that no process has claimed yet
}

// record is a record of the source.
type record struct {
	source byte
	offset int64
}

type truth struct {
	failed, done time.Time
	redrive      string // with which its last failure was written
}

type modelRun struct {
	id      string
	started time.Time
	left    []*kgo.Record // to be sent
	flying  []*kgo.Record
	late    []late // outcomes that are not in the ledger yet
}

type modelPlan struct {
	chosen []*kgo.Record
	copies []*Letter
}

type late struct {
	letter *kgo.Record
	state  State
}

// pass lets some time go by.
func (w *lineageWorld) pass() {
	w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int64{1, 999, 2_500, 90_000, 86_400_000}).Draw(w.T, "passed")) * time.Millisecond)
}

// fail writes a letter about a record that failed now.
func (w *lineageWorld) fail(r record, redrive string) {
	at := w.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, -7_000, 7_000, -3_600_000, 3_600_000}).Draw(w.T, "host's clock")) * time.Millisecond)
	for w.failures[at.UnixMilli()] { // one host has one clock
		at = at.Add(time.Millisecond)
	}
	w.failures[at.UnixMilli()] = true
	m := from(r.offset)
	m.Original.TopicID, m.FailedAt, m.FirstFailedAt = [16]byte{r.source}, at, at
	if redrive != "" {
		m.Redrive = headers.Redrive{ID: redrive, Count: 1, From: headers.Position{Topic: "orders.dlq"}}
	}
	w.write(r, m.Append(nil), w.now)
	w.records[r].failed, w.records[r].redrive = w.now, redrive
}

func letterAt(offset int64) headers.Position {
	return headers.Position{Topic: "orders.dlq", Offset: offset}
}

func (w *lineageWorld) write(r record, h []kgo.RecordHeader, failed time.Time) {
	l := &kgo.Record{Topic: "orders.dlq", Offset: w.next, Timestamp: w.now, Headers: h}
	w.next++
	w.letters, w.of[l], w.failed[l] = append(w.letters, l), r, failed
}

// record writes an entry.
func (w *lineageWorld) record(l *kgo.Record, e Entry) {
	e.At = w.now.Add(w.operator)
	r := e.Record("orders.dlq.ledger", 0, l.Offset)
	r.Timestamp = w.now
	w.entries = append(w.entries, r)
}

func (w *lineageWorld) ledger() *Ledger {
	l := NewLedger("orders.dlq", "orders.dlq.ledger")
	for _, e := range w.entries {
		l.take(ParseLedgerRecord(e))
	}
	_ = l.ended(nil)
	return l
}

// choose returns the letters that a plan or a discard takes: some of the open ones, and the copies
// that are recorded with them.
func (w *lineageWorld) choose(ledger *Ledger) (chosen []*kgo.Record, copies []*Letter) {
	some := rapid.SampledFrom([]func(*Letter) bool{nil, func(l *Letter) bool { return l.Record.Offset%2 == 0 }, func(l *Letter) bool { return l.Meta.Original.Offset%2 == 1 }}).Draw(w.T, "filter")
	c := newSelector(&Filter{Match: some}, ledger, WithCopies)
	for _, r := range w.letters {
		switch l := c.selected(r); {
		case l == nil:
		case l.State == Duplicate:
			copies = append(copies, l)
		default:
			chosen = append(chosen, r)
		}
	}
	return chosen, copies
}

func (w *lineageWorld) failNew(*rapid.T) {
	w.pass()
	r := record{w.source, w.offsets[w.source]}
	w.offsets[w.source]++
	w.records[r] = &truth{}
	w.fail(r, "")
}

// failAgain makes a record fail once more, as after a crash before the commit or after a rewind of
// the group.
func (w *lineageWorld) failAgain(t *rapid.T) {
	var again []record
	for r := range w.records {
		if r.source == w.source {
			again = append(again, r)
		}
	}
	if len(again) == 0 {
		t.Skip("another action: no letter can fail again")
	}
	slices.SortFunc(again, func(a, b record) int { return int(a.offset - b.offset) })
	w.pass()
	r := rapid.SampledFrom(again).Draw(w.T, "record")
	redrive := ""
	if rapid.Bool().Draw(w.T, "of the run") {
		redrive = w.records[r].redrive
	}
	w.fail(r, redrive)
}

func (w *lineageWorld) recreate(*rapid.T) { w.source++ }

// A run begins in three steps: it reads the ledger, reads the letters, and claims. Other actions
// may come in between.
func (w *lineageWorld) readLedger(*rapid.T) { w.known = w.ledger() }

func (w *lineageWorld) planRun(t *rapid.T) {
	if w.known == nil {
		t.Skip("another action: the ledger was not read")
	}
	chosen, copies := w.choose(w.known)
	if len(chosen) == 0 {
		t.Skip("another action: no letter is open")
	}
	w.plan = &modelPlan{chosen, copies}
}

// claim omits letters that were resolved since the plan, and their copies.
func (w *lineageWorld) claim(t *rapid.T) {
	if w.plan == nil {
		t.Skip("another action: there is no plan")
	}
	w.pass()
	p, ledger := w.plan, w.ledger()
	w.plan = nil
	run := &modelRun{id: fmt.Sprint("r", len(w.runs)), started: w.now.Add(w.operator)}
	resolved := map[int64]bool{}
	for _, l := range p.chosen {
		if resolved[l.Offset] = ledger.State(0, l.Offset).Resolves(); !resolved[l.Offset] {
			run.left = append(run.left, l)
		}
	}
	w.runs = append(w.runs, run)
	for _, c := range p.copies {
		if !resolved[c.CopyOf] && !ledger.State(0, c.Record.Offset).Resolves() {
			w.record(c.Record, Entry{State: Duplicate, Run: run.id, Target: letterAt(c.CopyOf)})
		}
	}
}

// run draws a run that has letters of a kind.
func (w *lineageWorld) run(t *rapid.T, has func(*modelRun) int) *modelRun {
	some := slices.DeleteFunc(slices.Clone(w.runs), func(r *modelRun) bool { return has(r) == 0 })
	if len(some) == 0 {
		t.Skip("another action: no run has such letters")
	}
	w.pass()
	return rapid.SampledFrom(some).Draw(w.T, "run")
}

func draw(w *lineageWorld, from *[]*kgo.Record) *kgo.Record {
	i := rapid.IntRange(0, len(*from)-1).Draw(w.T, "letter")
	l := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return l
}

// send sends a letter of a run that was not resolved meanwhile. Only one run is active at a time.
func (w *lineageWorld) send(t *rapid.T) {
	run := w.run(t, func(r *modelRun) int { return len(r.left) })
	l := draw(w, &run.left)
	if w.ledger().State(0, l.Offset).Resolves() {
		return
	}
	if !slices.Contains(w.letters, l) {
		w.record(l, Entry{State: Expired, Run: run.id})
		return
	}
	if rapid.IntRange(0, 3).Draw(w.T, "unfollowed") == 0 {
		w.record(l, Entry{State: Unfollowed, Run: run.id})
		w.records[w.of[l]].done = w.now
		return
	}
	w.record(l, Entry{State: Redriven, Run: run.id})
	run.flying = append(run.flying, l)
}

// outcome decides what becomes of a letter that was sent. It is recorded later.
func (w *lineageWorld) outcome(t *rapid.T) {
	run := w.run(t, func(r *modelRun) int { return len(r.flying) })
	l := draw(w, &run.flying)
	state := rapid.SampledFrom([]State{Succeeded, Succeeded, Failed, Discarded, Unknown}).Draw(w.T, "outcome")
	switch state {
	case Failed:
		w.fail(w.of[l], run.id)
	case Succeeded, Discarded:
		w.records[w.of[l]].done = w.now
	}
	run.late = append(run.late, late{l, state})
}

func (w *lineageWorld) recordLate(t *rapid.T) {
	run := w.run(t, func(r *modelRun) int { return len(r.late) })
	for _, o := range run.late {
		w.record(o.letter, Entry{State: o.state, Run: run.id, Since: run.started})
	}
	run.late = nil
}

func (w *lineageWorld) discard(*rapid.T) {
	w.pass()
	chosen, copies := w.choose(w.ledger())
	for _, l := range chosen {
		w.record(l, Entry{State: rapid.SampledFrom([]State{Discarded, Compensated}).Draw(w.T, "as"), By: "ada", Why: "test"})
		w.records[w.of[l]].done = w.now
	}
	for _, c := range copies {
		w.record(c.Record, Entry{State: Duplicate, Target: letterAt(c.CopyOf)})
	}
}

// reopen withdraws that some letters were discarded. If a letter is of the record's last failure,
// the record then counts as one about which nothing was done since.
func (w *lineageWorld) reopen(t *rapid.T) {
	w.pass()
	some := rapid.SampledFrom([]func(*Letter) bool{nil, func(l *Letter) bool { return l.Record.Offset%2 == 0 }}).Draw(w.T, "filter")
	c := newSelector(&Filter{Match: some}, w.ledger(), DiscardedOnly)
	n := 0
	for _, r := range w.letters {
		if l := c.selected(r); l != nil {
			n++
			w.record(r, Entry{State: Reopened, By: "ben", Why: "test"})
			if of := w.records[w.of[r]]; w.failed[r].Equal(of.failed) {
				of.done = time.Time{}
			}
		}
	}
	if n == 0 {
		t.Skip("another action: no letter is discarded")
	}
}

func (w *lineageWorld) prune(t *rapid.T) {
	if len(w.letters) == 0 {
		t.Skip("another action: the topic is empty")
	}
	w.pass()
	ledger := w.ledger()
	part := &prunedPart{start: w.letters[0].Offset, until: w.next}
	p := &pruning{judge: newJudge(ledger, true), parts: map[int32]*prunedPart{0: part}}
	for _, l := range w.letters {
		p.add(l)
	}
	found := p.prunable()
	for offset := range found.duplicates[0].All() {
		letter := offset - int64(found.duplicates[0].behind.Of(offset))
		w.record(&kgo.Record{Offset: offset}, Entry{State: Duplicate, Target: letterAt(letter)})
	}
	until := max(found.Until[0], part.start)
	deleted := 0
	for ; deleted < len(w.letters) && w.letters[deleted].Offset < until; deleted++ {
		if l := w.letters[deleted]; !ledger.State(0, l.Offset).Resolves() {
			t.Fatalf("prune deletes letter %d, and no entry settles it", l.Offset)
		}
	}
	gone := w.letters[:deleted]
	w.archive, w.letters = append(w.archive, gone...), w.letters[deleted:]
	stays := w.represented(newJudge(w.ledger(), false))
	for _, l := range gone {
		if w.lacksAll(l, stays) {
			t.Fatalf("prune deletes letter %d of the record %v, about which nothing was done", l.Offset, w.of[l])
		}
	}
}

// represented returns the records that have an open or pending letter. It may be a copy that is
// judged by another letter.
func (w *lineageWorld) represented(j *judge) map[record]bool {
	all := map[record]bool{}
	for _, l := range w.letters {
		state := j.state(l)
		if !state.Resolves() || j.ledger.pending(0, l.Offset) {
			all[w.of[l]] = true
		}
	}
	return all
}

// lacksAll reports whether a letter has its record's last failure, no action followed that failure,
// and no letter represents the record.
func (w *lineageWorld) lacksAll(l *kgo.Record, represented map[record]bool) bool {
	r := w.of[l]
	t := w.records[r]
	return w.failed[l].Equal(t.failed) && t.failed.After(t.done) && !represented[r]
}

// importOne imports a letter from an archive, or from an export of letters that are still there.
func (w *lineageWorld) importOne(t *rapid.T) {
	from := slices.Concat(w.archive, w.letters)
	if len(from) == 0 {
		t.Skip("another action: there is nothing to import")
	}
	w.pass()
	l := rapid.SampledFrom(from).Draw(w.T, "imported")
	w.write(w.of[l], l.Headers, w.failed[l])
}

// expire deletes letters as the topic's retention does, whatever their state.
func (w *lineageWorld) expire(t *rapid.T) {
	if len(w.letters) == 0 {
		t.Skip("another action: the topic is empty")
	}
	w.pass()
	n := rapid.IntRange(1, min(len(w.letters), 3)).Draw(w.T, "expired")
	w.archive, w.letters = append(w.archive, w.letters[:n]...), w.letters[n:]
}

// compact removes all records of the ledger but the last of each key.
func (w *lineageWorld) compact(*rapid.T) {
	last := map[string]*kgo.Record{}
	for _, e := range w.entries {
		last[string(e.Key)] = e
	}
	w.entries = slices.DeleteFunc(w.entries, func(e *kgo.Record) bool { return last[string(e.Key)] != e })
}

// naive returns the state of each letter. It compares each letter with all letters before it.
func (w *lineageWorld) naive() (states []State) {
	said := map[int64]State{}
	letter := map[int64]int64{} // by the offset of a copy
	since := map[int64]time.Time{}
	for _, r := range w.entries {
		offset, err := strconv.ParseInt(string(r.Key), 10, 64)
		_, e, err2 := readEntry(r)
		if err != nil || err2 != nil {
			w.Fatal(err, err2)
		}
		at := e.At
		if r.Timestamp.Before(at) {
			at = r.Timestamp
		}
		if !e.Since.IsZero() {
			at = at.Add(e.Since.Sub(e.At))
		}
		if was := said[offset]; was.resolves() && e.State.resolves() && since[offset].Before(at) {
			at = since[offset]
		}
		said[offset], since[offset], letter[offset] = e.State, at.Truncate(time.Second), e.Target.Offset
	}
	var all []headers.Meta
	for i, l := range w.letters {
		m, err := headers.Parse(l.Headers)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, m)
		state := said[l.Offset]
		if of := said[letter[l.Offset]]; state == Duplicate && !of.resolves() {
			if state = ""; of == Unknown {
				state = of
			}
		}
		failed := m.FailedAt
		if l.Timestamp.After(failed) {
			failed = l.Timestamp
		}
		for j := 0; j < i && !state.Resolves(); j++ {
			before := all[j]
			if before.Original.TopicID != m.Original.TopicID || before.Original.Offset != m.Original.Offset || before.Redrive.ID != m.Redrive.ID {
				continue
			}
			last := true // of the letters that are resolved
			for k := j + 1; k < i; k++ {
				same := all[k].Original.TopicID == m.Original.TopicID && all[k].Original.Offset == m.Original.Offset && all[k].Redrive.ID == m.Redrive.ID
				last = last && !(same && said[w.letters[k].Offset].resolves())
			}
			switch resolved := states[j].resolves() && state != Reopened; {
			case !states[j].Resolves(),
				resolved && failed.Before(since[w.letters[j].Offset]),
				resolved && last && before.FailedAt.Equal(m.FailedAt):
				state = Duplicate
			}
		}
		states = append(states, state)
	}
	return states
}

// check compares the truth with the states that the ledger returns.
func (w *lineageWorld) check(*rapid.T) {
	j := newJudge(w.ledger(), false)
	want := w.naive()
	open := map[string]int64{}
	for i, l := range w.letters {
		state := j.state(l)
		if state != want[i] {
			w.Fatalf("letter %d is %q, want %q", l.Offset, state, want[i])
		}
		m, _ := headers.Parse(l.Headers)
		if !state.Resolves() {
			key := fmt.Sprint(w.of[l], m.Redrive.ID)
			if first, twice := open[key]; twice {
				w.Fatalf("letters %d and %d are both open, and of one record", first, l.Offset)
			}
			open[key] = l.Offset
		}
	}
	represented := w.represented(newJudge(w.ledger(), false))
	for _, l := range w.letters {
		if w.lacksAll(l, represented) {
			w.Fatalf("record %v failed at %s, as letter %d says, nothing was done about it since, and no letter is open", w.of[l], w.failed[l], l.Offset)
		}
	}
}

// The promises hold in whatever order events come. A record that failed after the last action on it
// has exactly one open or pending letter, unless retention deleted all letters of the failure.
// Prune deletes no letter that no entry resolves.
func TestLineage_HidesNothingThatWasNotProcessed(t *testing.T) {
	cases.Alone(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &lineageWorld{
			T: t, now: time.UnixMilli(1_763_000_000_000), failures: map[int64]bool{}, source: 1, records: map[record]*truth{}, offsets: map[byte]int64{}, of: map[*kgo.Record]record{}, failed: map[*kgo.Record]time.Time{},
			operator: time.Duration(rapid.SampledFrom([]int{0, 0, -3600, 3600, 86_400}).Draw(t, "operator's clock")) * time.Second,
		}
		t.Repeat(map[string]func(*rapid.T){
			"":     w.check,
			"fail": w.failNew, "fail again": w.failAgain, "fail once more": w.failAgain, "recreate": w.recreate, "read": w.readLedger, "plan": w.planRun, "claim": w.claim, "send": w.send, "send another": w.send,
			"outcome": w.outcome, "record": w.recordLate, "discard": w.discard, "reopen": w.reopen, "prune": w.prune, "import": w.importOne, "expire": w.expire, "compact": w.compact,
		})
	})
}
