package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Initialising a transactional id aborts its open transaction. The coordinator reports that, but a
// partition may miss it. A partition without a leader at that moment is skipped, as after a broker
// was frozen until its controller removed it (seen with Kafka 4.3). And a broker that does not ask
// the coordinator about each new transaction accepts a late batch (KIP-890). The open records have
// the producer id that the next owner gets too. The marker of the next commit then makes them
// visible: letters twice, or a claim without a process.
//
// So the fence asks the partitions themselves. Partitions on which the id was used get a marker
// with the new epoch. The marker ends the open transaction, and the partition refuses older epochs.
//
// The marker ends a transaction as it ended elsewhere, because a commit can miss a partition as
// well. To abort a copy that has a ledger entry would lose its letter. To abort the ledger entry of
// a visible copy would send the letter again.

const (
	fencePatience = 30 * time.Second
	fenceRound    = 10 * time.Second // bounds a round
	fenceEvery    = 50 * time.Millisecond
	// fenceAgain is how long the fence waits for a marker before it asks for another one.
	fenceAgain = time.Second
)

// Fence ends open transactions of earlier owners on all partitions of topics, and makes the
// partitions refuse late writes. The ledger's partitions have to come first, in a call of their
// own, because an open transaction there blocks committed readers of the ledger.
func (w *Writers) Fence(ctx context.Context, kafka []kgo.Opt, ledger string, topics ...string) error {
	// Newer versions of EndTxn would raise the producers' epochs, which must stay.
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(kmsg.EndTxn.Int16(), 4)
	cl, err := client.New(slices.Concat(kafka, []kgo.Opt{kgo.MaxVersions(versions)})...)
	if err != nil {
		return err
	}
	defer cl.Close()
	ids, err := w.IDs(ctx)
	if err != nil {
		return err
	}
	for which, producer := range w.Clients {
		id, epoch, err := producer.ProducerID(ctx)
		if err != nil {
			return err
		}
		f := &idFence{
			opts: kafka, cl: cl, adm: kadm.NewClient(cl), ledger: ledger,
			txn: w.txn[which], id: id, epoch: epoch, ids: ids, blind: map[string]bool{}, judged: map[gap]bool{},
		}
		if err := f.raise(ctx, topics); err != nil {
			return err
		}
	}
	return nil
}

// idFence is the fence of one id. See DESIGN.md, "Fence".
type idFence struct {
	opts   []kgo.Opt
	cl     *kgo.Client
	adm    *kadm.Client
	ledger string
	txn    string
	id     int64
	epoch  int16
	ids    map[int64]int16 // epochs of both producers
	asked  time.Time       // last request for markers
	blind  map[string]bool // topics that cannot be asked, and have their markers
	judged map[gap]bool    // judged gaps; true if the open transaction is to be committed
}

// gap is a partition without a marker of the current epoch.
type gap struct {
	topic     string
	partition int32
	open      int64 // offset of the first open record; -1 if there is none, or it is unknown
}

func (g gap) String() string { return fmt.Sprintf("%s/%d", g.topic, g.partition) }

// raise asks for markers until all are written. A marker may be late or lost, so raise checks and
// asks again.
func (f *idFence) raise(ctx context.Context, topics []string) error {
	left := patience(fencePatience)
	why := context.DeadlineExceeded
	for {
		began := time.Now()
		gaps, err := f.round(ctx, topics)
		left.spend(time.Since(began))
		switch {
		case err == nil && len(gaps) == 0:
			return nil
		case err == nil && f.unjudged(gaps): // slow in a long ledger
			began = time.Now()
			if err = f.judge(ctx, gaps); err == nil {
				continue
			}
			left.spend(time.Since(began))
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			why = fmt.Errorf("no marker was written to %v", gaps)
		case !isPassing(err):
			return err
		case !errors.Is(err, context.DeadlineExceeded):
			why = err
		}
		if left <= 0 {
			return fmt.Errorf("end the open transactions of earlier runs under the transactional id %q: %w; check the brokers, and try again", f.txn, why)
		}
		select {
		case <-ctx.Done():
		case <-time.After(fenceEvery):
		}
		left.spend(fenceEvery)
	}
}

// patience is the time that is left for retries. A process that was frozen, or whose machine slept,
// retried nothing meanwhile. Therefore a round counts for no longer than it may take.
type patience time.Duration

func (p *patience) spend(took time.Duration) { *p -= patience(min(took, fenceRound)) }

// round finds the gaps, and asks for markers on the judged ones, unless it asked within fenceAgain.
func (f *idFence) round(ctx context.Context, topics []string) (gaps []gap, err error) {
	ctx, cancel := context.WithTimeout(ctx, fenceRound)
	defer cancel()
	gaps, blind, err := f.gaps(ctx, topics)
	if err != nil || len(gaps) == 0 || f.unjudged(gaps) || time.Since(f.asked) < fenceAgain {
		return gaps, err
	}
	if err := f.close(ctx, gaps); err != nil {
		return gaps, err
	}
	f.asked = time.Now()
	maps.Copy(f.blind, blind)
	return gaps, nil
}

// gaps returns the partitions on which the id was used in an older epoch or has an open
// transaction. It includes all partitions of topics that cannot be asked.
func (f *idFence) gaps(ctx context.Context, topics []string) (gaps []gap, blind map[string]bool, err error) {
	found, err := f.adm.ListTopics(ctx, topics...)
	if err != nil {
		return nil, nil, fmt.Errorf("list topics: %w", err)
	}
	blind = map[string]bool{}
	for topic, d := range found {
		// a missing or hidden topic is an error of the later write
		if d.Err != nil || f.blind[topic] {
			continue
		}
		all := kadm.TopicsSet{}
		all.Add(topic, d.Partitions.Numbers()...)
		producers, err := f.adm.DescribeProducers(ctx, all)
		for _, p := range producers[topic].Partitions {
			if err == nil && p.Err != nil {
				err = fmt.Errorf("partition %d: %w", p.Partition, p.Err)
			}
			if a, ok := p.ActiveProducers[f.id]; ok && (a.ProducerEpoch < f.epoch || a.CurrentTxnStartOffset >= 0) {
				gaps = append(gaps, gap{topic, p.Partition, a.CurrentTxnStartOffset})
			}
		}
		if permission.IsDenied(err) || f.tooOld(ctx, err) {
			blind[topic] = true
			for partition := range d.Partitions {
				gaps = append(gaps, gap{topic, partition, -1})
			}
		} else if err != nil {
			return nil, nil, fmt.Errorf("describe the producers of %s: %w", topic, err)
		}
	}
	return gaps, blind, nil
}

// close writes a marker to each gap: a commit if the open transaction was committed elsewhere, else
// an abort.
func (f *idFence) close(ctx context.Context, gaps []gap) error {
	for _, commit := range []bool{true, false} {
		of := slices.DeleteFunc(slices.Clone(gaps), func(g gap) bool { return f.judged[g] != commit })
		if err := f.mark(ctx, of, commit); err != nil {
			return err
		}
	}
	return nil
}

// mark ends a transaction that has partitions and no records, so that their leaders get its
// markers.
func (f *idFence) mark(ctx context.Context, gaps []gap, commit bool) error {
	if len(gaps) == 0 {
		return nil
	}
	partitions := kadm.TopicsSet{}
	for _, g := range gaps {
		partitions.Add(g.topic, g.partition)
	}
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = f.txn, f.id, f.epoch
	for _, t := range partitions.Sorted() {
		rt := kmsg.NewAddPartitionsToTxnRequestTopic()
		rt.Topic, rt.Partitions = t.Topic, t.Partitions
		add.Topics = append(add.Topics, rt)
	}
	added, err := add.RequestWith(ctx, f.cl)
	if err != nil {
		return fmt.Errorf("add partitions to a transaction of %q: %w", f.txn, err)
	}
	for _, t := range added.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil && !errors.Is(err, kerr.OperationNotAttempted) {
				return f.lost(fmt.Errorf("add %s/%d to a transaction of %q: %w", t.Topic, p.Partition, f.txn, permission.Denied("WRITE", "topic", t.Topic, err)))
			}
		}
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = f.txn, f.id, f.epoch, commit
	ended, err := end.RequestWith(ctx, f.cl)
	if err == nil {
		err = kerr.ErrorForCode(ended.ErrorCode)
	}
	if err != nil {
		return f.lost(fmt.Errorf("end a transaction of %q: %w", f.txn, err))
	}
	return nil
}

// lost wraps ErrUncertain into an answer which means that another process has initialised the id.
func (f *idFence) lost(err error) error {
	if IsFenced(err) {
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}

// tooOld reports whether an error comes from a broker that does not know the request. It asks the
// brokers for their versions. A broker that is down must not count as too old, because its open
// transactions would be aborted without a check.
func (f *idFence) tooOld(ctx context.Context, err error) bool {
	if err == nil || errors.Is(err, kerr.UnsupportedVersion) {
		return err != nil
	}
	versions, asked := f.adm.ApiVersions(ctx)
	if asked != nil {
		return false
	}
	for _, v := range versions {
		if _, knows := v.KeyMaxVersion(kmsg.DescribeProducers.Int16()); v.Err == nil && !knows {
			return true
		}
	}
	return false
}

// isPassing reports whether a retry may succeed. It excludes answers that a broker would repeat.
func isPassing(err error) bool {
	if answer, ok := errors.AsType[*kerr.Error](err); ok {
		return answer.Retriable || errors.Is(err, kerr.ConcurrentTransactions)
	}
	return true
}
