package chaos

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// evidence is all that the checker knows of a run: journals, topics, samples of offsets, metrics,
// and what was done to the members.
type evidence struct {
	services  []*served
	acked     map[int64]written
	lost      map[int64]bool // that the brokers had acknowledged
	older     []olderLog
	members   map[string]*facts
	metrics   map[string]measured // of members that ended in order
	told      map[string]told     // by journals
	leaks     map[string]leaks
	alarms    map[string]string // what members' logs say of data races and panics
	windows   []window
	samples   []sample
	loaded    int64 // when the load ended, in nanoseconds
	unsettled map[tp]string
	died      []*facts      // by themselves
	recovers  time.Duration // in which a topic is back at its speed after an outage
}

// served is a service with what it did.
type served struct {
	service
	siblings map[string]retrytopics.Siblings // by source, with all tiers that there were
	records  map[int64]*record
	feeds    map[tp]*feed
	// redriven are the committed copies that runs of redrive sent, and entries the last entry of
	// each letter in the ledger.
	redriven []*copied
	entries  map[tp]map[int64]dlq.Entry
}

// record is a record of a source, and what became of it.
type record struct {
	id      int64
	script  script
	origin  *kgo.Record
	runs    []*run    // in the order of their starts
	copies  []*copied // on tiers
	letters []*copied
}

// copied is a record of a sibling.
type copied struct {
	rec  *kgo.Record
	meta headers.Meta
	err  error
	of   *record
}

// life is how often the record had been redriven when the copy was written.
func (c *copied) life() int { return c.meta.Redrive.Count }

// sent reports whether a run of redrive wrote the copy, and no failure.
func (c *copied) sent() bool { return c.meta.Attempts == 0 }

// failed is the attempt whose failure led to the copy. In a strain it counts as none, and has the
// same number again, unless it was the first.
func (c *copied) failed() int {
	if n := len(c.meta.History); n > 0 {
		return c.meta.History[n-1].Number
	}
	return c.meta.Attempts
}

// feed is a physical partition that handlers read.
type feed struct {
	tp
	source bool
	at     map[int64]*delivered // by offset
	last   int64                // the highest offset with a record
}

// delivered is a record of a feed with its runs.
type delivered struct {
	offset int64
	of     *record
	copy   *copied // nil on a source
	runs   []*run  // in the order of their starts
}

func (e *execution) evidence(ctx context.Context) (*evidence, error) {
	ev := &evidence{recovers: e.cfg.recovers, members: map[string]*facts{}, metrics: map[string]measured{}, told: map[string]told{}, leaks: map[string]leaks{}, alarms: map[string]string{}}
	for _, m := range e.crew.dead() {
		ev.died = append(ev.died, m.told())
	}
	e.mu.Lock()
	ev.windows = slices.Clone(e.windows)
	e.mu.Unlock()
	e.load.mu.Lock()
	ev.acked, ev.lost, ev.older = e.load.acked, e.load.lost, e.load.older
	e.load.mu.Unlock()
	e.sampler.mu.Lock()
	ev.samples = e.sampler.samples
	e.sampler.mu.Unlock()

	byID := map[int64]*record{}
	for _, s := range e.plan.services {
		v, err := e.read(ctx, s)
		if err != nil {
			return nil, err
		}
		ev.services = append(ev.services, v)
		for id, r := range v.records {
			byID[id] = r
		}
	}
	for _, member := range e.crew.everyone() {
		m := member.told()
		ev.members[m.job.Name] = m
		is, err := readJournal(m.job.Name, m.job.journal())
		if err != nil {
			return nil, err
		}
		ev.told[m.job.Name] = is
		if alarm, err := alarmIn(m.job.log()); err != nil {
			return nil, err
		} else if alarm != "" {
			ev.alarms[m.job.Name] = alarm
		}
		for _, r := range is.runs {
			of := byID[r.id]
			if of == nil && ev.lost[r.id] {
				continue
			}
			if of == nil {
				return nil, fmt.Errorf("%v, and there is no such record", r)
			}
			of.runs = append(of.runs, r)
			timeout := ev.services[m.service].Policy.HandlerTimeout
			from := r.start - int64(timeout)
			r.stalled = r.verdict == verdictFailed && (ev.stoodStill(r.member, from, r.end) || is.starved(from, r.end, timeout/2))
			f := ev.services[m.service].feeds[tp{r.topic, r.partition}]
			if f == nil || f.at[r.offset] == nil {
				return nil, fmt.Errorf("%v, and the topic has no record there", r)
			}
			d := f.at[r.offset]
			r.lane = tp{of.origin.Topic, r.partition}
			if d.of != of {
				if !ev.isCut(f.tp, r.offset) && !ev.brokersEnded(r) {
					return nil, fmt.Errorf("%v, and the topic has another record there", r)
				}
				continue // it was written again, to another offset
			}
			d.runs = append(d.runs, r)
			if d.copy != nil {
				r.life = d.copy.life()
			}
		}
		seen := leaks{}
		if ok, err := readJSON(m.job.leaks(), &seen); err != nil {
			return nil, err
		} else if ok {
			ev.leaks[m.job.Name] = seen
		}
		if m.killed {
			continue
		}
		got := measured{}
		if ok, err := readJSON(m.job.metrics(), &got); err != nil {
			return nil, err
		} else if ok {
			ev.metrics[m.job.Name] = got
		}
	}
	byStart := func(a, b *run) int { return cmp.Compare(a.start, b.start) }
	for _, v := range ev.services {
		for _, r := range v.records {
			slices.SortFunc(r.runs, byStart)
		}
		for _, f := range v.feeds {
			for _, d := range f.at {
				slices.SortFunc(d.runs, byStart)
			}
		}
	}
	return ev, nil
}

// membersOf returns the names of a group's members, in order.
func (ev *evidence) membersOf(group string) (names []string) {
	for name, m := range ev.members {
		if m.job.Service.Group == group {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// read reads all topics of a service.
func (e *execution) read(ctx context.Context, s service) (*served, error) {
	v := &served{service: s, siblings: map[string]retrytopics.Siblings{}, records: map[int64]*record{}, feeds: map[tp]*feed{}, entries: map[tp]map[int64]dlq.Entry{}}
	feedOf := func(r *kgo.Record, source bool) *feed {
		at := tp{r.Topic, r.Partition}
		if v.feeds[at] == nil {
			v.feeds[at] = &feed{tp: at, source: source, at: map[int64]*delivered{}}
		}
		v.feeds[at].last = max(v.feeds[at].last, r.Offset)
		return v.feeds[at]
	}
	for _, topic := range s.Topics {
		err := e.readTopic(ctx, topic, func(r *kgo.Record) {
			if sc, ok := parseScript(r.Headers); ok {
				rec := &record{id: sc.id, script: sc, origin: r}
				v.records[sc.id] = rec
				feedOf(r, true).at[r.Offset] = &delivered{offset: r.Offset, of: rec}
			}
		})
		if err != nil {
			return nil, err
		}
		v.siblings[topic] = s.siblings(topic, e.sampler.tiers(s))
		copyOf := func(r *kgo.Record) *copied {
			c := &copied{rec: r}
			c.meta, c.err = headers.Parse(r.Headers)
			if sc, ok := parseScript(r.Headers); ok {
				c.of = v.records[sc.id]
			}
			return c
		}
		for _, tier := range v.siblings[topic].Tiers {
			err := e.readTopic(ctx, tier.Topic, func(r *kgo.Record) {
				c := copyOf(r)
				if c.of != nil {
					c.of.copies = append(c.of.copies, c)
				}
				feedOf(r, false).at[r.Offset] = &delivered{offset: r.Offset, of: c.of, copy: c}
			})
			if err != nil {
				return nil, err
			}
			committed := map[*copied]bool{}
			err = e.readTopic(ctx, tier.Topic, func(r *kgo.Record) {
				c := feedOf(r, false).at[r.Offset].copy
				if committed[c] = true; c.of != nil && c.sent() {
					v.redriven = append(v.redriven, c)
				}
			}, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
			if err != nil {
				return nil, err
			}
			// What a run of redrive did not commit is not there for consumers.
			for at, f := range v.feeds {
				if at.topic == tier.Topic {
					maps.DeleteFunc(f.at, func(_ int64, d *delivered) bool { return !committed[d.copy] })
				}
			}
		}
		err = e.readTopic(ctx, v.siblings[topic].DLQ, func(r *kgo.Record) {
			if c := copyOf(r); c.of != nil {
				c.of.letters = append(c.of.letters, c)
			}
		})
		if err != nil {
			return nil, err
		}
		name := v.siblings[topic].DLQ
		err = dlq.NewLedger(name, v.siblings[topic].Ledger, e.direct()...).Read(ctx, nil, func(n *dlq.LedgerRecord) {
			if n.Err == nil && n.Run == "" {
				at := tp{name, n.Record.Partition}
				if v.entries[at] == nil {
					v.entries[at] = map[int64]dlq.Entry{}
				}
				v.entries[at][n.Letter] = n.Entry
			}
		})
		if err != nil {
			return nil, fmt.Errorf("reading the ledger of %s: %w", name, err)
		}
	}
	return v, nil
}

// readTopic calls see with each record of a topic; uncommitted ones included, unless opts say
// otherwise.
func (e *execution) readTopic(ctx context.Context, topic string, see func(*kgo.Record), opts ...kgo.Opt) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	starts, err := e.adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return err
	}
	ends, err := e.adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	from, left := map[int32]kgo.Offset{}, map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if start, ok := starts.Lookup(topic, o.Partition); ok && o.Err == nil && o.Offset > start.Offset {
			from[o.Partition], left[o.Partition] = kgo.NewOffset().At(start.Offset), o.Offset
		}
	})
	if len(left) == 0 {
		return nil
	}
	cl, err := kgo.NewClient(append(append(e.direct(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond)), opts...)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, ok := left[r.Partition]
			if !ok || r.Offset >= end {
				return
			}
			if !r.Attrs.IsControl() {
				see(r)
			}
			if r.Offset == end-1 {
				delete(left, r.Partition)
			}
		})
	}
	return nil
}

// cutAt returns the lowest offset of a partition that was lost with the end of a log, and whether
// one was. Beyond it, an offset has had two records.
func (ev *evidence) cutAt(at tp) (from int64, ok bool) {
	for _, o := range ev.older {
		if o.tp == at && (!ok || o.from < from) {
			from, ok = o.from, true
		}
	}
	return from, ok
}

// isCut reports whether an offset lies beyond the end of an older log.
func (ev *evidence) isCut(at tp, offset int64) bool {
	from, ok := ev.cutAt(at)
	return ok && offset >= from
}

// knows reports whether a sample's commit of a partition is about a record of it, and not about one
// that had the same offset and was lost with the end of the log. A commit has the leader epoch up
// to which its owner has read, and what was lost has a lower one than what was written since.
func (ev *evidence) knows(s *sample, at tp, offset int64, d *delivered) bool {
	return !ev.isCut(at, offset) || d == nil || d.of == nil || s.epochs[at] >= d.record().LeaderEpoch
}

// readAgain reports whether a partition that lost the end of its log was read again from where that
// was cut, or from its start, in a time: a journal says so.
func (ev *evidence) readAgain(at tp, from, to int64) bool {
	if _, cut := ev.cutAt(at); !cut {
		return false
	}
	for _, t := range ev.told {
		if slices.ContainsFunc(t.changes(at, from, to), func(c laneChange) bool { return c.what == laneRestarted || c.what == laneReread }) {
			return true
		}
	}
	return false
}
