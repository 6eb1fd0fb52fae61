package redrive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

const (
	// progressStep is how many offsets Progress reads at first.
	progressStep = 2_000
	// markersWithin is how long Progress waits for transactions of the ledger to end.
	markersWithin = time.Second
	markersPoll   = 20 * time.Millisecond
)

// Progress returns a run as its process last recorded it: at the heartbeat, every five seconds, or
// at the end. It reads the run's last record from the end of the ledger's first partition
// backwards, so it costs a few fetches while the run goes on, however large the ledger is. Long
// after the run it may read that whole partition. It derives no outcomes, as [Redriver.Status]
// does. A transaction that is open in the ledger holds it up for a second at most. The error wraps
// [ErrNoRun] if the ledger has no such run.
func (r *Redriver) Progress(ctx context.Context, topic, id string) (Outcome, error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return Outcome{}, err
	}
	value, err := r.lastRecord(ctx, t.ledger, id)
	if err != nil {
		return Outcome{}, within(topic, err)
	}
	rec, err := parseRecord(value)
	if err != nil {
		return Outcome{}, within(topic, unreadable(t.ledger, id, err))
	}
	return rec.outcome(topic), nil
}

// lastRecord returns the last committed value of a run's record. It reads ever larger parts of the
// partition, from its end backwards.
func (r *Redriver) lastRecord(ctx context.Context, ledger, id string) ([]byte, error) {
	none := fmt.Errorf("run %s: %w", id, ErrNoRun)
	if id == "" || strings.Contains(id, "/") {
		return nil, none
	}
	adm, err := client.NewAdmin(r.cfg.Kafka...)
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	ends, err := decidedEnds(ctx, adm, ledger)
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return nil, none
	case err != nil:
		return nil, fmt.Errorf("list end offsets of %s: %w", ledger, permission.Denied("DESCRIBE", "topic", ledger, err))
	}
	starts, err := client.ListOffsets(ctx, adm.ListStartOffsets, ledger)
	if err := errors.Join(err, starts.Error()); err != nil {
		return nil, fmt.Errorf("list start offsets of %s: %w", ledger, err)
	}
	start, _ := starts.Lookup(ledger, 0)
	end, _ := ends.Lookup(ledger, 0)
	key := string(ledgerrecord.Run(ledger, id, nil).Key)
	for until, step := end.Offset, int64(progressStep); until > start.Offset; step *= 8 {
		from := max(start.Offset, until-step)
		var last []byte
		for record, err := range dlq.Records(ctx, ledger, []dlq.Range{{From: from, Until: until}}, r.cfg.Kafka...) {
			if err != nil {
				return nil, permission.Denied("READ", "topic", ledger, err)
			}
			if string(record.Key) == key {
				if last = record.Value; last == nil {
					last = []byte{}
				}
			}
		}
		if len(last) > 0 {
			return last, nil
		} else if last != nil {
			break // it was deleted
		}
		until = from
	}
	return nil, none
}

// decidedEnds returns the end offsets of a topic, at most the first open transaction's start, so
// that a reading up to there does not wait. A broker answers a commit before its marker is in the
// topic. So what a run recorded last may be behind that start for a moment after the run returned.
// decidedEnds waits markersWithin at most for the transactions that are open in partition 0.
func decidedEnds(ctx context.Context, adm *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	all, err := client.ListOffsets(ctx, adm.ListEndOffsets, topic)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		decided, err := client.ListOffsets(ctx, adm.ListCommittedOffsets, topic)
		if err := errors.Join(err, all.Error(), decided.Error()); err != nil {
			return nil, err
		}
		end, _ := all.Lookup(topic, 0)
		if now, _ := decided.Lookup(topic, 0); now.Offset >= end.Offset || time.Since(began) >= markersWithin {
			return decided, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(markersPoll):
		}
	}
}
