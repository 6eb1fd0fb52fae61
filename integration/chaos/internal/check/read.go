package check

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/retrytopics"
)

// Input is what the checker gets of a run. All else is in journals and topics.
type Input struct {
	Services  []trace.Service
	Tiers     []time.Duration // all that a service has ever had
	Members   []*trace.Member
	Died      []*trace.Member // by themselves
	Acked     map[int64]trace.Written
	Lost      map[int64]bool // that the brokers had acknowledged
	Older     []trace.OlderLog
	Windows   []trace.Window
	Samples   []trace.Sample
	Loaded    int64               // when the load ended, in nanoseconds
	Unsettled map[trace.TP]string // floors that stood still at the end
	Settles   time.Duration       // in which a floor moves in a healthy cluster
	Recovers  time.Duration       // in which a topic is back at its speed after an outage
	Opts      []kgo.Opt           // of clients that no fault of the network reaches
}

// reader collects the evidence of a run.
type reader struct {
	in   Input
	ev   *evidence
	adm  *kadm.Client
	byID map[int64]*record
}

// read reads the journals and topics of a run.
func read(ctx context.Context, in Input) (*evidence, error) {
	cl, err := kgo.NewClient(in.Opts...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ev := &evidence{
		acked: in.Acked, lost: in.Lost, older: in.Older, windows: in.Windows, samples: in.Samples, loaded: in.Loaded,
		unsettled: in.Unsettled, died: in.Died, settles: in.Settles, recovers: in.Recovers,
		members: map[string]*trace.Member{}, metrics: map[string]trace.Measured{}, journals: map[string]trace.Logged{}, leaks: map[string]trace.Leaks{}, alarms: map[string]string{},
	}
	r := reader{in: in, ev: ev, adm: kadm.NewClient(cl), byID: map[int64]*record{}}
	for _, s := range in.Services {
		v, err := r.service(ctx, s)
		if err != nil {
			return nil, err
		}
		ev.services = append(ev.services, v)
		maps.Copy(r.byID, v.records)
	}
	for _, m := range in.Members {
		if err := r.member(m); err != nil {
			return nil, err
		}
	}
	byStart := func(a, b *trace.Run) int { return cmp.Compare(a.Start, b.Start) }
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

// member reads what a member left.
func (r *reader) member(m *trace.Member) error {
	name := m.Job.Name
	r.ev.members[name] = m
	is, err := trace.ReadJournal(name, m.Job.Journal())
	if err != nil {
		return err
	}
	r.ev.journals[name] = is
	if alarm, err := alarmIn(m.Job.Log()); err != nil {
		return err
	} else if alarm != "" {
		r.ev.alarms[name] = alarm
	}
	for _, x := range is.Runs {
		if err := r.run(m, is, x); err != nil {
			return err
		}
	}
	found := trace.Leaks{}
	if ok, err := readJSON(m.Job.Leaks(), &found); err != nil {
		return err
	} else if ok {
		r.ev.leaks[name] = found
	}
	if m.Killed {
		return nil
	}
	got := trace.Measured{}
	if ok, err := readJSON(m.Job.Metrics(), &got); err != nil {
		return err
	} else if ok {
		r.ev.metrics[name] = got
	}
	return nil
}

// run adds a run of a member to its record and its delivery.
func (r *reader) run(m *trace.Member, is trace.Logged, x *trace.Run) error {
	of := r.byID[x.ID]
	if of == nil && r.ev.lost[x.ID] {
		return nil
	}
	if of == nil {
		return fmt.Errorf("%v, and there is no such record", x)
	}
	of.runs = append(of.runs, x)
	s := r.ev.services[m.Service]
	timeout := s.Policy.HandlerTimeout
	from := x.Start - int64(timeout)
	x.Stalled = x.Verdict == trace.VerdictFailed && (r.ev.stoodStill(x.Member, from, x.End) || is.Starved(from, x.End, timeout/2))
	f := s.feeds[trace.TP{Topic: x.Topic, Partition: x.Partition}]
	if f == nil || f.at[x.Offset] == nil {
		return fmt.Errorf("%v, and the topic has no record there", x)
	}
	d := f.at[x.Offset]
	x.Lane = trace.TP{Topic: of.origin.Topic, Partition: x.Partition}
	if d.of != of {
		if !r.ev.isCut(f.TP, x.Offset) && !r.ev.brokersEnded(x) {
			return fmt.Errorf("%v, and the topic has another record there", x)
		}
		return nil // it was written again, to another offset
	}
	d.runs = append(d.runs, x)
	if d.copy != nil {
		x.Life = d.copy.life()
	}
	return nil
}

// service reads all topics of a service.
func (r *reader) service(ctx context.Context, s trace.Service) (*served, error) {
	v := &served{Service: s, siblings: map[string]retrytopics.Siblings{}, records: map[int64]*record{}, feeds: map[trace.TP]*feed{}, entries: map[trace.TP]map[int64]dlq.Entry{}}
	for _, topic := range s.Topics {
		err := r.topic(ctx, topic, func(rec *kgo.Record) {
			if sc, ok := trace.ParseScript(rec.Headers); ok {
				of := &record{id: sc.ID, script: sc, origin: rec}
				v.records[sc.ID] = of
				v.feedOf(rec, true).at[rec.Offset] = &delivered{offset: rec.Offset, of: of}
			}
		})
		if err != nil {
			return nil, err
		}
		named := s.Siblings(topic, r.in.Tiers)
		v.siblings[topic] = named
		for _, tier := range named.Tiers {
			if err := r.tier(ctx, v, tier.Topic); err != nil {
				return nil, err
			}
		}
		err = r.topic(ctx, named.DLQ, func(rec *kgo.Record) {
			if c := v.copyOf(rec); c.of != nil {
				c.of.letters = append(c.of.letters, c)
			}
		})
		if err != nil {
			return nil, err
		}
		if err := r.ledger(ctx, v, named); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// tier reads a retry topic.
func (r *reader) tier(ctx context.Context, v *served, topic string) error {
	err := r.topic(ctx, topic, func(rec *kgo.Record) {
		c := v.copyOf(rec)
		if c.of != nil {
			c.of.copies = append(c.of.copies, c)
		}
		v.feedOf(rec, false).at[rec.Offset] = &delivered{offset: rec.Offset, of: c.of, copy: c}
	})
	if err != nil {
		return err
	}
	committed := map[*copied]bool{}
	err = r.topic(ctx, topic, func(rec *kgo.Record) {
		c := v.feedOf(rec, false).at[rec.Offset].copy
		if committed[c] = true; c.of != nil && c.sent() {
			v.redriven = append(v.redriven, c)
		}
	}, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	// What a run of redrive did not commit is not there for consumers.
	for at, f := range v.feeds {
		if at.Topic == topic {
			maps.DeleteFunc(f.at, func(_ int64, d *delivered) bool { return !committed[d.copy] })
		}
	}
	return nil
}

// ledger reads the last entry of each letter of a source.
func (r *reader) ledger(ctx context.Context, v *served, named retrytopics.Siblings) error {
	err := dlq.NewLedger(named.DLQ, named.Ledger, r.in.Opts...).Read(ctx, nil, func(n *dlq.LedgerRecord) {
		if n.Err == nil && n.Run == "" {
			at := trace.TP{Topic: named.DLQ, Partition: n.Record.Partition}
			if v.entries[at] == nil {
				v.entries[at] = map[int64]dlq.Entry{}
			}
			v.entries[at][n.Letter] = n.Entry
		}
	})
	if err != nil {
		return fmt.Errorf("reading the ledger of %s: %w", named.DLQ, err)
	}
	return nil
}

// topic calls do with each record of a topic; uncommitted ones included, unless opts say
// otherwise.
func (r *reader) topic(ctx context.Context, topic string, do func(*kgo.Record), opts ...kgo.Opt) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	from, left, err := r.bounds(ctx, topic)
	if err != nil || len(left) == 0 {
		return err
	}
	cl, err := kgo.NewClient(slices.Concat(r.in.Opts, []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.KeepControlRecords(), kgo.FetchMaxWait(100 * time.Millisecond),
	}, opts)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", topic, err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			end, ok := left[rec.Partition]
			if !ok || rec.Offset >= end {
				return
			}
			if !rec.Attrs.IsControl() {
				do(rec)
			}
			if rec.Offset == end-1 {
				delete(left, rec.Partition)
			}
		})
	}
	return nil
}

// bounds returns the start offsets and the ends of the partitions of a topic that are not empty.
func (r *reader) bounds(ctx context.Context, topic string) (from map[int32]kgo.Offset, left map[int32]int64, err error) {
	starts, err := r.adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	ends, err := r.adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	from, left = map[int32]kgo.Offset{}, map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if start, ok := starts.Lookup(topic, o.Partition); ok && o.Err == nil && o.Offset > start.Offset {
			from[o.Partition], left[o.Partition] = kgo.NewOffset().At(start.Offset), o.Offset
		}
	})
	return from, left, nil
}

// readJSON reads what a member wrote to a file; ok is false if there is none.
func readJSON(name string, into any) (ok bool, err error) {
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err == nil, err
}

// alarmIn returns the line of a log about a data race, the end by a panic, or a log handler that
// panicked, and so wrote nothing to the journal; empty if there is none.
func alarmIn(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadString('\n')
		for _, alarm := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: ", "siding: Config.Logger panicked"} {
			if strings.HasPrefix(line, alarm) {
				return strings.TrimSpace(line), nil
			}
		}
		if err == io.EOF {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
}
