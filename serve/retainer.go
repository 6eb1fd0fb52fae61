package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/number"
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

// ErrNoRetention reports that the configuration sets no retention on a topic.
var ErrNoRetention = failure.ErrNoRetention

// ErrRetentionGoesOn reports that a retention was not applied, since an earlier call had not ended.
var ErrRetentionGoesOn = failure.ErrRetentionGoesOn

// ErrNoLedger reports that the ledger of a dead-letter topic does not exist, so what is done could
// not be recorded, and is not done. The error around it says what to create.
var ErrNoLedger = failure.ErrNoLedger

// retainer applies the retention of one topic, one call at a time.
type retainer struct {
	turn chan struct{} // has one element during a call
	busy atomic.Bool   // the server applies it by the clock

	next atomic.Int64 // when the topic is judged again, in Unix nanoseconds
	// letters that stay though they are beyond the limits, when it was last judged
	held atomic.Int64
}

// retainer returns what applies the retention of a topic.
func (s *Server) retainer(t *watch.Topic) *retainer {
	r, _ := s.retainers.LoadOrStore(t.DeadLetterTopic.Topic, &retainer{turn: make(chan struct{}, 1)})
	return r.(*retainer)
}

// alone waits until no other call goes on, and keeps further ones waiting until release is called.
func (r *retainer) alone(ctx context.Context) (release func(), err error) {
	select {
	case r.turn <- struct{}{}:
		return func() { <-r.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w, and did not end in time: nothing was deleted; ask again later, in an hour at most: %w", ErrRetentionGoesOn, context.Cause(ctx))
	}
}

func (r *retainer) isDue(now time.Time) bool { return now.UnixNano() >= r.next.Load() }

// RetentionReport is what a retention deletes from a topic, or would delete.
type RetentionReport struct {
	Topic string
	At    time.Time
	// Limits has the limits in words, as the ledger has them.
	Limits string
	// Until has, for each partition with letters to delete, the offset of the first that stays.
	Until map[int32]int64
	// Letters is how many letters go. Open and Discarded are how many of them are open or without
	// an outcome, and how many were discarded.
	Letters, Open, Discarded int64
	// Held is how many letters stay though they are beyond the limits: they are open, or stand
	// behind a letter that stays.
	Held int64
	// Expiring is how many letters are archived because Kafka's own retention is about to delete
	// them.
	Expiring int64
	// Archives are where letters were written, and the folder where they would be written.
	Archives []string
	// Waits is the run that has to end before letters are deleted; empty if there is none.
	Waits string
}

// DryRunRetention returns what the retention of a topic would do now. It changes nothing. The error
// wraps [ErrNoRetention] if there is none, and [ErrNoLedger] if it would delete without a ledger.
func (s *Server) DryRunRetention(ctx context.Context, name string) (*RetentionReport, error) {
	t, is, err := s.retentionOf(name)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	report, do, err := s.judgeRetention(ctx, t, is, now)
	switch {
	case err != nil:
		return nil, err
	case do.lacksLedger():
		return nil, t.NoLedger()
	}
	if is.Archive != "" && (report.Letters > 0 || report.Expiring > 0) {
		report.Archives = []string{is.Archive}
	}
	return report, nil
}

// ApplyRetention does now what the server does by the clock, and returns what it did. by is who
// asks, for the ledger. It is for the owner of the topic; others do no harm. While a run of the
// topic is unfinished it deletes nothing. The error wraps [ErrNoRetention] if there is no
// retention, [ErrNoLedger] if nothing was deleted because nobody could read later who did, and
// [ErrRetentionGoesOn] if ctx ended while this call waited for an earlier one.
func (s *Server) ApplyRetention(ctx context.Context, name, by string) (*RetentionReport, error) {
	t, is, err := s.retentionOf(name)
	if err != nil {
		return nil, err
	}
	return s.retain(ctx, t, is, by)
}

func (s *Server) retentionOf(name string) (*watch.Topic, Retention, error) {
	t := s.cluster.Topic(name)
	switch {
	case t == nil:
		return nil, Retention{}, fmt.Errorf("serve: there is no dead-letter topic %q", name)
	case !t.Settings.Retains:
		return nil, Retention{}, fmt.Errorf("serve: %s: %w", name, ErrNoRetention)
	}
	return t, s.cfg.topicConfig(name).Retention.withDefaults(), nil
}

// judgeRetention returns what a retention would do, and what package dlq found.
func (s *Server) judgeRetention(ctx context.Context, t *watch.Topic, is Retention, now time.Time) (*RetentionReport, *toRetain, error) {
	report := &RetentionReport{Topic: t.DeadLetterTopic.Topic, At: now, Limits: is.String(), Waits: t.Unfinished()}
	do := &toRetain{ledger: dlq.NewLedger(report.Topic, t.Ledger, s.cfg.Kafka...)}
	found, err := do.ledger.PrunableBy(ctx, is.limits(), now, nil)
	if err != nil {
		return nil, nil, err
	}
	do.prunable = found
	report.Until, report.Letters, report.Open, report.Discarded, report.Held = found.Until, found.Letters, found.Open, found.Discarded, found.Held
	if is.Archive != "" {
		do.expiring = expiringLetters(t, now)
		report.Expiring = do.expiring.letters
	}
	return report, do, nil
}

// toRetain is what a retention has to do.
type toRetain struct {
	ledger   *dlq.Ledger
	prunable *dlq.Prunable
	expiring expiring
}

// lacksLedger reports whether letters would go without a trace.
func (r *toRetain) lacksLedger() bool { return r.ledger.Missing() && r.prunable.Letters > 0 }

// retain applies a retention. Nothing is deleted unless its archive is complete and was read back.
func (s *Server) retain(ctx context.Context, t *watch.Topic, is Retention, by string) (*RetentionReport, error) {
	release, err := s.retainer(t).alone(ctx)
	if err != nil {
		return nil, fmt.Errorf("serve: %s: %w", t.DeadLetterTopic.Topic, err)
	}
	defer release()
	if t.Book.Summary().Pending > 0 { // what is known of them by now may let them go
		s.outcomes.record(ctx, t.DeadLetterTopic.Topic)
	}
	report, do, err := s.judgeRetention(ctx, t, is, time.Now())
	if err != nil {
		return nil, err
	}
	var folder *archive.Target
	if is.Archive != "" {
		if folder, err = archive.ParseFolder(is.Archive, s.cfg.S3); err != nil {
			return nil, err
		}
	}
	switch {
	case do.lacksLedger():
		err = t.NoLedger()
	case report.Waits == "":
		err = s.prune(ctx, t, by, folder, report, do)
	default:
		report.Until, report.Letters, report.Open, report.Discarded = nil, 0, 0, 0
	}
	if folder != nil && do.expiring.letters > 0 {
		err = errors.Join(err, s.archiveExpiring(ctx, t, folder, report, do))
	}
	s.retainer(t).held.Store(report.Held)
	return report, err
}

// prune deletes what is beyond the limits, after it was archived.
func (s *Server) prune(ctx context.Context, t *watch.Topic, by string, folder *archive.Target, report *RetentionReport, do *toRetain) error {
	o := dlq.PruneOptions{By: by, Why: report.Limits}
	until := do.prunable.Until
	var a *archive.Archive
	if folder != nil && report.Letters > 0 {
		var err error
		a, err = s.archive(ctx, t, folder, dlq.Cursor{End: do.prunable.Until}, report.Letters)
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
			report.Archives = nil
			if left := folder.Remove(ctx, a); left != nil {
				err = fmt.Errorf("%s; the archive has letters that stay: %w", err.Error(), left)
			}
		default:
			s.meters.archived(ctx, report.Topic, a.Letters)
			err = fmt.Errorf("%w; the archive %s exists and is complete, and its letters may be in the topic still", err, o.Archive)
		}
		return err
	}
	report.Letters, report.Open = do.prunable.Letters, do.prunable.Open // of this process
	switch {
	case a == nil:
	case report.Letters == 0 && do.archivedByAnother(ctx, t.Book.TopicID(), until, a):
		report.Archives = nil
		return folder.Remove(ctx, a)
	default:
		s.meters.archived(ctx, report.Topic, a.Letters)
	}
	if report.Letters > 0 {
		s.meters.pruned(ctx, report.Topic, report.Letters)
		s.log.Info("siding: retention deleted dead letters", "topic", report.Topic, "letters", report.Letters, "open", report.Open, "held", report.Held, "limits", report.Limits, "archive", o.Archive)
	}
	return nil
}

// archivedByAnother reports whether another process archived the letters of an archive too, and
// then deleted them: two servers may own a topic for a moment. It waits some seconds for the end of
// that. Letters that Kafka's own retention deleted are in no other archive.
func (r *toRetain) archivedByAnother(ctx context.Context, topic [16]byte, until map[int32]int64, a *archive.Archive) bool {
	ctx, cancel := context.WithTimeout(ctx, recordedWithin)
	defer cancel()
	for {
		all, _ := r.ledger.PruneRecords(ctx) // a record that cannot be read is no reason to remove
		i := slices.IndexFunc(all, func(p dlq.PruneRecord) bool {
			// As many letters up to the same offsets are the same ones.
			return p.TopicID == topic && maps.Equal(p.Until, until) && p.Letters >= a.Letters && p.Error == "" && p.Archive != "" && p.Archive != a.Location
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

// archive writes letters to a folder. least is how many there have to be.
func (s *Server) archive(ctx context.Context, t *watch.Topic, folder *archive.Target, c dlq.Cursor, least int64) (*archive.Archive, error) {
	name := t.DeadLetterTopic.Topic
	c.Topic = name
	return folder.Write(ctx, name, "", func(w io.Writer) (int64, error) {
		n, err := dlq.Export(w, dlq.Read(ctx, name, dlq.Filter{}, c, s.cfg.Kafka...))
		if err == nil && n < least {
			err = fmt.Errorf("the retention of Kafka deleted %s meanwhile; the server tries again", number.Of(least-n, "letter"))
		}
		return n, err
	})
}

// applyRetention applies the retentions of the topics that the server owns, when it is time, to a
// few topics at once.
func (s *Server) applyRetention(ctx context.Context, running *sync.WaitGroup) {
	now := time.Now()
	for _, t := range s.cluster.Owned() {
		if !t.Settings.Retains || t.Book.Progress().Complete.IsZero() || !s.retainer(t).isDue(now) {
			continue
		}
		if !s.retainer(t).busy.CompareAndSwap(false, true) {
			continue
		}
		select {
		case s.retaining <- struct{}{}:
		default:
			s.retainer(t).busy.Store(false)
			return // the next round comes
		}
		running.Go(func() {
			defer func() { <-s.retaining }()
			defer s.retainer(t).busy.Store(false)
			s.retainByClock(ctx, t, now)
		})
	}
}

// retainByClock applies the retention of a topic, and says when it is judged next.
func (s *Server) retainByClock(ctx context.Context, t *watch.Topic, now time.Time) {
	name := t.DeadLetterTopic.Topic
	is := s.cfg.topicConfig(name).Retention.withDefaults()
	s.meters.seen(ctx, name)
	goes, held := t.Book.Beyond(now, is.limits())
	if goes == 0 && (is.Archive == "" || expiringLetters(t, now).letters == 0) {
		// The book says that there is nothing to do, so nothing is read.
		s.retainer(t).held.Store(held)
		s.retainer(t).next.Store(now.Add(is.Every).UnixNano())
		return
	}
	within, cancel := context.WithTimeout(ctx, retainTime)
	defer cancel()
	report, err := s.retain(within, t, is, retainBy)
	wait := is.Every
	if err == nil && report.Waits != "" {
		wait = min(wait, retryRetention)
	}
	if err != nil && ctx.Err() == nil {
		wait = min(wait, retryRetention)
		if errors.Is(err, dlq.ErrChanged) || errors.Is(err, dlq.ErrUnfinishedRun) || errors.Is(err, ErrRetentionGoesOn) {
			s.log.Info("siding: retention waits", "topic", name, "reason", err)
		} else if s.meters.failed(ctx, name); err.Error() != t.NoLedger().Error() {
			s.log.Error("siding: retention failed, and is tried again", "topic", name, "in", wait.String(), "error", err)
		}
	}
	s.retainer(t).next.Store(now.Add(wait).UnixNano())
}

// produce writes a note of the topic to its ledger.
func (s *Server) produce(ctx context.Context, r *kgo.Record) error {
	cl, err := client.New(append(s.cfg.Kafka[:len(s.cfg.Kafka):len(s.cfg.Kafka)], kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return cl.ProduceSync(ctx, r).FirstErr()
}
