package redrive

// Reads the original records of letters without a value.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// errValueLost reports that the original record of a letter without a value is gone.
var errValueLost = errors.New("the original record is gone")

// originalWait bounds the reading of an original record.
const originalWait = 10 * time.Second

// originals reads the values that letters lack, from the original records or from duplicates of the
// letters. It creates its client for the first letter. It is not safe for concurrent use, and the
// reader of letters closes it.
type originals struct {
	run *ownedRun
	cl  *kgo.Client
	// duplicates of the run's letters by letter, from the ledger; nil before the first use
	copies map[letters.Place][]letters.Place
}

func (o *originals) open() (err error) {
	if o.cl != nil {
		return nil
	}
	o.cl, err = client.New(append(slices.Clip(o.run.r.cfg.Kafka),
		// the group has read the record, so it is committed
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
		kgo.FetchMaxWait(250*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	)...)
	return err
}

func (o *originals) close() {
	if o.cl != nil {
		o.cl.Close()
	}
}

// value returns the value that a letter lacks. If the original record is gone, a duplicate of the
// letter may have the value. No other run would redrive the duplicate, since the letter hides it.
func (o *originals) value(ctx context.Context, r *kgo.Record) ([]byte, error) {
	m, _ := headers.Parse(r.Headers)
	if m.Original.Topic == "" {
		return nil, fmt.Errorf("the letter does not name its original position: %w", errValueLost)
	}
	original, err := o.record(ctx, m.Original)
	if err == nil {
		return original.Value, nil
	}
	if !errors.Is(err, errValueLost) {
		return nil, err
	}
	copies, failed := o.copiesOf(ctx, letters.At(r.Partition, r.Offset))
	if failed != nil {
		return nil, failed
	}
	for _, at := range copies {
		p := at.In(o.run.topics.dlq)
		p.TopicID = o.run.topicID
		c, failed := o.record(ctx, p)
		if errors.Is(failed, errValueLost) {
			continue
		} else if failed != nil {
			return nil, failed
		}
		if m, broken := headers.Parse(c.Headers); broken == nil && !m.ValueOmitted {
			return c.Value, nil
		}
	}
	return nil, err
}

// copiesOf returns the duplicates of a letter, which the run's claim recorded. It reads the ledger
// at its first call, because few runs need it.
func (o *originals) copiesOf(ctx context.Context, letter letters.Place) ([]letters.Place, error) {
	if o.copies == nil {
		copies := map[letters.Place][]letters.Place{}
		err := dlq.NewLedger(o.run.topics.dlq, o.run.topics.ledger, o.run.r.cfg.Kafka...).Read(ctx, nil, func(n *dlq.LedgerRecord) {
			if n.Run != "" || n.Err != nil || n.Letter < 0 || n.Entry.Run != o.run.rec.ID || n.Entry.State != dlq.Duplicate {
				return
			}
			of := letters.At(n.Entry.Target.Partition, n.Entry.Target.Offset)
			copies[of] = append(copies[of], letters.At(n.Record.Partition, n.Letter))
		})
		if err != nil {
			return nil, permission.Denied("READ", "topic", o.run.topics.ledger, err)
		}
		o.copies = copies
	}
	return o.copies[letter], nil
}

// record reads the record at a position.
func (o *originals) record(ctx context.Context, at headers.Position) (*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, originalWait)
	defer cancel()
	if err := o.open(); err != nil {
		return nil, err
	}
	r, err := o.read(ctx, at)
	return r, permission.Denied("READ", "topic", at.Topic, err)
}

// there checks whether a record can be at a position.
func (o *originals) there(ctx context.Context, at headers.Position) error {
	adm := kadm.NewClient(o.cl)
	topics, err := adm.ListTopics(ctx, at.Topic)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	switch d := topics[at.Topic]; {
	case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return errValueLost // deleted
	case d.Err != nil:
		return fmt.Errorf("describe topic %q: %w", at.Topic, d.Err)
	case at.TopicID != [16]byte{} && d.ID != (kadm.TopicID{}) && d.ID != kadm.TopicID(at.TopicID):
		return errValueLost // the topic was recreated
	}
	starts, err := bounds.Starts(ctx, adm, []string{at.Topic})
	if err != nil {
		return err
	}
	ends, err := bounds.EndsOfExisting(ctx, adm, []string{at.Topic})
	if err != nil {
		return err
	}
	// a partition that the topic does not have ends at 0
	if at.Offset < starts[at.Topic][at.Partition] || at.Offset >= ends[at.Topic][at.Partition] {
		return errValueLost
	}
	return nil
}

func (o *originals) read(ctx context.Context, at headers.Position) (*kgo.Record, error) {
	if err := o.there(ctx, at); err != nil {
		return nil, err
	}
	o.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{at.Topic: {at.Partition: kgo.NewOffset().At(at.Offset)}})
	// also drops records that were fetched behind it
	defer o.cl.RemoveConsumePartitions(map[string][]int32{at.Topic: {at.Partition}})
	for {
		fetches := o.cl.PollRecords(ctx, 1)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read %v: %w", at, err)
		}
		for _, e := range fetches.Errors() {
			return nil, fmt.Errorf("read %v: %w", at, e.Err)
		}
		for _, rec := range fetches.Records() {
			if rec.Offset != at.Offset {
				return nil, errValueLost // deleted by compaction
			}
			return rec, nil
		}
	}
}
