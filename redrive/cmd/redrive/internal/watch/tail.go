package watch

// What came to the topic and its ledger since the last look.

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// tail keeps its place in a dead-letter topic and in the topic's ledger.
type tail struct {
	*cli.Session
	of subject.Sibling
	letters
	pulse

	ledger *dlq.Ledger
	ends   map[int32]int64 // of the ledger when it was last read
	next   map[int32]int64 // offsets from which no letter was read
	looked time.Time       // when the last look began that missed nothing
	runs   []redrive.Outcome
}

func newTail(s *cli.Session, of subject.Sibling) (*tail, error) {
	t := &tail{Session: s, of: of}
	err := t.reset()
	return t, err
}

// reset forgets all that was read.
func (t *tail) reset() (err error) {
	t.ends, t.next, t.looked, t.runs = nil, map[int32]int64{}, time.Time{}, nil
	t.letters = letters{rows: map[int32][]row{}, numbers: map[kind]uint32{}, redact: t.Redact.Message}
	t.ledger, err = subject.LedgerOf(t.Session, t.of)
	return err
}

// look reads what came since the last look. After an error the tail has what could be read, and the
// next look goes on.
func (t *tail) look(ctx context.Context) error {
	began := t.Now()
	topics, err := t.Admin.ListTopics(ctx, t.of.Topic, t.ledger.Name())
	if err != nil {
		// The user may see the other topic: subject.FindTopic found it.
		if denied := cli.OnTopic("DESCRIBE", t.ledger.Name(), err); cli.IsA[*redrive.DeniedError](denied) {
			return denied
		}
		return err
	}
	if found := topics[t.of.Topic]; found.Err != nil {
		return cli.OnTopic("DESCRIBE", t.of.Topic, found.Err)
	} else if t.ends != nil && t.ledger.TopicID() != found.ID {
		if err := t.reset(); err != nil {
			return err
		}
	}
	t.hear(t.Now())
	newer, err := t.readLedger(ctx, topics[t.ledger.Name()])
	if err != nil {
		return err
	}
	if err := t.readLetters(ctx, began); err != nil {
		return cli.OnTopic("READ", t.of.Topic, err)
	}
	t.looked = began
	return newer
}

// readLedger reads the ledger, unless it ends where it did. newer is the error about entries that a
// newer siding wrote: the others were read.
func (t *tail) readLedger(ctx context.Context, found kadm.TopicDetail) (newer, err error) {
	ends := map[int32]int64{}
	if found.Err == nil {
		listed, err := client.ListOffsets(ctx, t.Admin.ListCommittedOffsets, t.ledger.Name())
		if err := errors.Join(err, listed.Error()); err != nil {
			return nil, cli.OnTopic("DESCRIBE", t.ledger.Name(), err)
		}
		for p, o := range listed[t.ledger.Name()] {
			ends[p] = o.Offset
		}
	}
	was := t.ledger.LedgerID()
	if t.ends != nil && was == found.ID && maps.Equal(ends, t.ends) {
		return nil, nil
	}
	runs := t.ends == nil
	type place struct {
		partition int32
		offset    int64
	}
	var touched []place
	err = t.ledger.Read(ctx, func(read, total int64) { t.progress(t.Now(), read, total) }, func(r *dlq.LedgerRecord) {
		runs = runs || r.Run != "" && !strings.Contains(r.Run, "/")
		if _, _, report := ledgerrecord.DiscardReportOf(r.Run); r.Letter >= 0 && (r.Run == "" || report) {
			touched = append(touched, place{r.Record.Partition, r.Letter})
		}
	})
	for _, at := range touched { // the next read does not have them again
		t.judge(at.partition, at.offset, t.ledger.State(at.partition, at.offset))
	}
	if was != t.ledger.LedgerID() {
		t.judgeAll()
	}
	if runs {
		t.runs, _ = redrive.RunsIn(t.ledger)
	}
	if errors.Is(err, dlq.ErrNewerVersion) {
		newer, err = err, nil
	}
	if err != nil {
		return nil, cli.OnTopic("READ", t.ledger.Name(), err)
	}
	t.ends = ends
	return newer, nil
}

// judgeAll takes over what became of all letters: their ledger is another one.
func (t *tail) judgeAll() {
	for p, rows := range t.rows {
		for i := range rows {
			rows[i].fate = fateOf(t.ledger.State(p, rows[i].offset), rows[i].copied)
		}
	}
}

// readLetters reads the letters that came, and forgets those that retention deleted.
func (t *tail) readLetters(ctx context.Context, began time.Time) error {
	starts, err1 := client.ListOffsets(ctx, t.Admin.ListStartOffsets, t.of.Topic)
	ends, err2 := client.ListOffsets(ctx, t.Admin.ListCommittedOffsets, t.of.Topic)
	problem := errors.Join(err1, err2, starts.Error(), ends.Error())
	c := dlq.Cursor{Topic: t.of.Topic, At: map[int32]int64{}, End: map[int32]int64{}}
	var read, total int64
	for p, end := range ends[t.of.Topic] {
		start, ok := starts.Lookup(t.of.Topic, p)
		if !ok || start.Err != nil || end.Err != nil {
			continue
		}
		// Letters may be lost with their leader: these are read anew.
		t.next[p] = max(min(t.next[p], end.Offset, t.ledger.TakeCut(p)), start.Offset)
		t.keep(p, start.Offset, t.next[p])
		if t.next[p] < end.Offset {
			c.At[p], c.End[p] = t.next[p], end.Offset
			total += end.Offset - t.next[p]
		}
	}
	if len(c.End) == 0 { // it would be a cursor of all
		return problem
	}
	t.progress(t.Now(), 0, total)
	for l, err := range t.ledger.Letters(ctx, dlq.Filter{}, c, dlq.WithResolved) {
		if err != nil {
			problem = errors.Join(problem, err)
			continue
		}
		p, offset := l.Record.Partition, l.Record.Offset
		t.add(l, l.State == dlq.Duplicate && t.ledger.State(p, offset) == "", t.looked, t.Now())
		read += offset + 1 - t.next[p]
		t.next[p] = offset + 1
		t.progress(t.Now(), read, total)
	}
	if problem == nil {
		for p, end := range c.End {
			t.next[p] = max(t.next[p], end) // markers of transactions
		}
	}
	return problem
}

// run returns the run that goes on, or else one that ended shortly before.
func (t *tail) run(now time.Time) *redrive.Outcome {
	for i := len(t.runs) - 1; i >= 0; i-- {
		if o := t.runs[i]; !o.State.Finished() || i == len(t.runs)-1 && now.Sub(o.Ended) < endedFor {
			return &o
		}
	}
	return nil
}

// endedFor is how long the last run is shown after its end.
const endedFor = 15 * time.Minute
