package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// retainBy is who deletes letters, for ledgers.
const retainBy = "retention"

// retryRetention is when a retention that failed is tried again, at the latest.
const retryRetention = 5 * time.Minute

// recordedWithin is how long another process may take to record that it deleted letters.
const recordedWithin = 5 * time.Second

// retainTime is how long a retention may take; what is left comes with the next one.
const retainTime = time.Hour

// DryRun returns what the retention of a topic would do now. It changes nothing. The error
// wraps [failure.ErrNoRetention] if there is none, and [failure.ErrNoLedger] if it would delete
// without a ledger.
func (k *Retainer) DryRun(ctx context.Context, name string) (api.RetentionReport, error) {
	t, is, err := k.retentionOf(name)
	if err != nil {
		return api.RetentionReport{}, err
	}
	now := time.Now()
	report, do, err := k.judgeRetention(ctx, t, is, now)
	switch {
	case err != nil:
		return api.RetentionReport{}, err
	case do.lacksLedger():
		return api.RetentionReport{}, t.NoLedger()
	}
	if is.Archive != "" && (report.Letters > 0 || report.Expiring > 0) {
		report.Archives = []string{is.Archive}
	}
	return *report, nil
}

// Apply does now what the server does by the clock, and returns what it did. by is who asks, for
// the ledger. It is for the owner of the topic; others do no harm. While a run of the topic is
// unfinished it deletes nothing. The error wraps [failure.ErrNoRetention] if there is no retention,
// [failure.ErrNoLedger] if nothing was deleted because the ledger could not say later who did, and
// [failure.ErrRetentionGoesOn] if ctx ended while this call waited for an earlier one.
func (k *Retainer) Apply(ctx context.Context, name, by string) (api.RetentionReport, error) {
	t, is, err := k.retentionOf(name)
	if err != nil {
		return api.RetentionReport{}, err
	}
	report, err := k.retain(ctx, t, is, by)
	if err != nil {
		return api.RetentionReport{}, err
	}
	return *report, nil
}

func (k *Retainer) retentionOf(name string) (*watch.Topic, Limits, error) {
	t := k.cfg.Cluster.Topic(name)
	switch {
	case t == nil:
		return nil, Limits{}, fmt.Errorf("serve: there is no dead-letter topic %q", name)
	case !t.Settings.Retains:
		return nil, Limits{}, fmt.Errorf("serve: %s: %w", name, failure.ErrNoRetention)
	}
	return t, k.cfg.Limits(name), nil
}

// judgeRetention returns what a retention would do, and what package dlq found.
func (k *Retainer) judgeRetention(ctx context.Context, t *watch.Topic, is Limits, now time.Time) (*api.RetentionReport, *toRetain, error) {
	report := &api.RetentionReport{Topic: t.DeadLetterTopic.Topic, At: now.UTC(), Limits: is.String(), Until: map[string]int64{}, Archives: []string{}, Waits: t.Unfinished()}
	do := &toRetain{ledger: dlq.NewLedger(report.Topic, t.Ledger, k.cfg.Kafka...)}
	found, err := do.ledger.PrunableBy(ctx, is.limits(), now, nil)
	if err != nil {
		return nil, nil, err
	}
	do.prunable = found
	report.Letters, report.Open, report.Discarded, report.Held = found.Letters, found.Open, found.Discarded, found.Held
	for partition, offset := range found.Until {
		report.Until[fmt.Sprint(partition)] = offset
	}
	if is.Archive != "" {
		do.expiring = expiringLetters(t, now)
		report.Expiring = do.expiring.letters
	}
	return report, do, nil
}

// lacksLedger reports whether letters would go without a trace.
func (r *toRetain) lacksLedger() bool { return r.ledger.Missing() && r.prunable.Letters > 0 }

// retain applies a retention. Nothing is deleted unless its archive is complete and was read back.
func (k *Retainer) retain(ctx context.Context, t *watch.Topic, is Limits, by string) (*api.RetentionReport, error) {
	release, err := k.of(t).alone(ctx)
	if err != nil {
		return nil, fmt.Errorf("serve: %s: %w", t.DeadLetterTopic.Topic, err)
	}
	defer release()
	if t.Index.Summary().Pending > 0 { // what is known of them by now may let them go
		k.cfg.Desk.Outcomes.Record(ctx, t.DeadLetterTopic.Topic)
	}
	report, do, err := k.judgeRetention(ctx, t, is, time.Now())
	if err != nil {
		return nil, err
	}
	var folder *archive.Target
	if is.Archive != "" {
		if folder, err = archive.ParseFolder(is.Archive, k.cfg.S3); err != nil {
			return nil, err
		}
	}
	switch {
	case do.lacksLedger():
		err = t.NoLedger()
	case report.Waits == "":
		err = k.prune(ctx, t, by, folder, report, do)
	default:
		report.Until, report.Letters, report.Open, report.Discarded = map[string]int64{}, 0, 0, 0
	}
	if folder != nil && do.expiring.letters > 0 {
		err = errors.Join(err, k.archiveExpiring(ctx, t, folder, report, do))
	}
	k.of(t).held.Store(report.Held)
	return report, err
}

// prune deletes what is beyond the limits, after it was archived.
func (k *Retainer) prune(ctx context.Context, t *watch.Topic, by string, folder *archive.Target, report *api.RetentionReport, do *toRetain) error {
	o := dlq.PruneOptions{By: by, Why: report.Limits}
	until := do.prunable.Until
	var a *archive.Archive
	if folder != nil && report.Letters > 0 {
		var err error
		a, err = k.archive(ctx, t, folder, dlq.Cursor{End: do.prunable.Until}, report.Letters)
		if err != nil {
			return fmt.Errorf("nothing was deleted: %w", err)
		}
		o.Archive = a.Location
		report.Archives = append(report.Archives, a.Location)
	}
	if err := do.ledger.Prune(ctx, do.prunable, o); err != nil {
		switch {
		case a == nil:
		case errors.Is(err, dlq.ErrKept):
			report.Archives = []string{}
			if left := folder.Remove(ctx, a); left != nil {
				err = fmt.Errorf("%s; the archive has letters that stay: %w", err.Error(), left)
			}
		default:
			k.meters.archived(ctx, report.Topic, a.Letters)
			err = fmt.Errorf("%w; the archive %s exists and is complete, and its letters may be in the topic still", err, o.Archive)
		}
		return err
	}
	report.Letters, report.Open = do.prunable.Letters, do.prunable.Open // of this process
	switch {
	case a == nil:
	case report.Letters == 0 && k.archivedByAnother(ctx, t, until, a):
		report.Archives = []string{}
		return folder.Remove(ctx, a)
	default:
		k.meters.archived(ctx, report.Topic, a.Letters)
	}
	if report.Letters > 0 {
		k.meters.pruned(ctx, report.Topic, report.Letters)
		k.cfg.Log.Info("siding: retention deleted dead letters", "topic", report.Topic, "letters", report.Letters, "open", report.Open, "held", report.Held, "limits", report.Limits, "archive", o.Archive)
	}
	return nil
}

// archivedByAnother reports whether another process archived the letters of an archive too, and
// then deleted them: two servers may own a topic for a moment. It waits some seconds for the end of
// that. Letters that Kafka's own retention deleted are in no other archive.
func (k *Retainer) archivedByAnother(ctx context.Context, t *watch.Topic, until map[int32]int64, a *archive.Archive) bool {
	ctx, cancel := context.WithTimeout(ctx, recordedWithin)
	defer cancel()
	for {
		prunes := ledgerrecord.Prunes{}
		err := dlq.NewLedger(t.DeadLetterTopic.Topic, t.Ledger, k.cfg.Kafka...).Read(ctx, nil, func(n *dlq.LedgerRecord) {
			// A record that cannot be read is no reason to remove.
			_, _ = prunes.Add(n.Run, n.Record.Value)
		})
		if !watch.IsWhole(err) {
			return false
		}
		all := prunes.Sorted()
		i := slices.IndexFunc(all, func(p ledgerrecord.Prune) bool {
			// As many letters up to the same offsets are the same ones.
			return p.TopicID == t.Index.TopicID() && maps.Equal(p.Until, until) && p.Letters >= a.Letters && p.Error == "" && p.Archive != "" && p.Archive != a.Location
		})
		switch {
		case i < 0:
			return false
		case !all[i].Deleted.IsZero():
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(recordedWithin / 20):
		}
	}
}

// ApplyByClock applies the retentions of the topics that the server owns, when it is time, to a
// few topics at once.
func (k *Retainer) ApplyByClock(ctx context.Context, running *sync.WaitGroup) {
	now := time.Now()
	for _, t := range k.cfg.Cluster.Owned() {
		if !t.Settings.Retains || t.Index.Progress().Complete.IsZero() || !k.of(t).isDue(now) {
			continue
		}
		if !k.of(t).busy.CompareAndSwap(false, true) {
			continue
		}
		select {
		case k.retaining <- struct{}{}:
		default:
			k.of(t).busy.Store(false)
			return // the next round comes
		}
		running.Go(func() {
			defer func() { <-k.retaining }()
			defer k.of(t).busy.Store(false)
			k.retainByClock(ctx, t, now)
		})
	}
}

// retainByClock applies the retention of a topic, and says when it is judged next.
func (k *Retainer) retainByClock(ctx context.Context, t *watch.Topic, now time.Time) {
	name := t.DeadLetterTopic.Topic
	is := k.cfg.Limits(name)
	k.meters.seen(ctx, name)
	goes, held := t.Index.Beyond(now, is.limits())
	if goes == 0 && (is.Archive == "" || expiringLetters(t, now).letters == 0) {
		// The index says that there is nothing to do, so nothing is read.
		k.of(t).held.Store(held)
		k.of(t).next.Store(now.Add(is.Every).UnixNano())
		return
	}
	within, cancel := context.WithTimeout(ctx, retainTime)
	defer cancel()
	report, err := k.retain(within, t, is, retainBy)
	wait := is.Every
	if err == nil && report.Waits != "" {
		wait = min(wait, retryRetention)
	}
	if err != nil && ctx.Err() == nil {
		wait = min(wait, retryRetention)
		if errors.Is(err, dlq.ErrChanged) || errors.Is(err, dlq.ErrUnfinishedRun) || errors.Is(err, failure.ErrRetentionGoesOn) {
			k.cfg.Log.Info("siding: retention waits", "topic", name, "reason", err)
		} else if k.meters.failed(ctx, name); err.Error() != t.NoLedger().Error() {
			k.cfg.Log.Error("siding: retention failed, and is tried again", "topic", name, "in", wait.String(), "error", err)
		}
	}
	k.of(t).next.Store(now.Add(wait).UnixNano())
}
