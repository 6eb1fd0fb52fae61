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

// To initialise a transactional id aborts what is open under it. So the coordinator says, and a
// partition may know nothing of it: one without a leader at that moment is passed over, as after a
// broker was frozen for so long that its controller gave it up (seen with Kafka 4.3), and brokers
// that do not ask the coordinator about each new transaction take a batch that comes late
// (KIP-890). What stands there is under the producer id that the next owner gets too, and the
// marker of the next commit makes it visible: letters twice, or the claim of a run that nobody has.
// So the partitions themselves are asked, and those on which the id was used get a marker with the
// new epoch. It ends what is open, and has them refuse what is older.
//
// It ends it as it ended elsewhere, since a commit can have passed over a partition as well: to
// abort a copy of which the ledger tells would lose its letter, and to abort the ledger's entry
// about a copy that is visible would send it again.

const (
	fencePatience = 30 * time.Second
	fenceRound    = 10 * time.Second // a round takes no longer
	fenceEvery    = 50 * time.Millisecond
	// fenceAgain is how long a marker may take before another one is asked for.
	fenceAgain = time.Second
)

// Fence has the partitions of topics end what was written to them under the ids before, and refuse
// what comes late. The ledger's partitions have to come first, in a call of their own: a committed
// reader of the ledger waits for what is open there.
func (w *Writers) Fence(ctx context.Context, kafka []kgo.Opt, ledger string, topics ...string) error {
	// The producers go on with the epochs that they have, which newer versions of EndTxn would
	// raise.
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
			txn: w.txn[which], id: id, epoch: epoch, ids: ids, blind: map[string]bool{}, stillFenced: map[gap]bool{},
		}
		if err := f.raise(ctx, topics); err != nil {
			return err
		}
	}
	return nil
}

// idFence is the fence of one id.
// See DESIGN.md, "Fence".
type idFence struct {
	opts        []kgo.Opt
	cl          *kgo.Client
	adm         *kadm.Client
	ledger      string
	txn         string
	id          int64
	epoch       int16
	ids         map[int64]int16 // those of both producers
	asked       time.Time       // when markers were asked for last
	blind       map[string]bool // topics that can't be asked, and have got their markers
	stillFenced map[gap]bool    // of what is open, whether it is to be committed
}

// gap is a partition without a marker of the current epoch.
type gap struct {
	topic     string
	partition int32
	open      int64 // where the first record stands that is open; -1 if none is, or nobody says
}

func (g gap) String() string { return fmt.Sprintf("%s/%d", g.topic, g.partition) }

// raise asks for markers until all are written. A marker may be written late or never, so raise
// looks for it and asks again.
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
		case err == nil && f.unjudged(gaps): // it takes a while where the ledger is long
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
			why = fmt.Errorf("no marker came to %v", gaps)
		case !isPassing(err):
			return err
		case !errors.Is(err, context.DeadlineExceeded):
			why = err
		}
		if left <= 0 {
			return fmt.Errorf("make sure that nothing of an earlier run is open under the transactional id %q: %w; see whether the brokers are well, and try again", f.txn, why)
		}
		select {
		case <-ctx.Done():
		case <-time.After(fenceEvery):
		}
		left.spend(fenceEvery)
	}
}

// patience is how much longer something is tried. A process that was frozen, or whose machine
// slept, tried nothing meanwhile. Therefore a round counts for no longer than it may take.
type patience time.Duration

func (p *patience) spend(took time.Duration) { *p -= patience(min(took, fenceRound)) }

// round looks where markers are missing. It asks for those that are judged, unless it did so just
// now.
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

// gaps are the partitions on which the id was used in an older epoch or has something open, and all
// partitions of topics that cannot be asked.
func (f *idFence) gaps(ctx context.Context, topics []string) (gaps []gap, blind map[string]bool, err error) {
	found, err := f.adm.ListTopics(ctx, topics...)
	if err != nil {
		return nil, nil, fmt.Errorf("list topics: %w", err)
	}
	blind = map[string]bool{}
	for topic, d := range found {
		// one that is not there, or that the user may not see, is an error of those who write to it
		if d.Err != nil || f.blind[topic] {
			continue
		}
		all := kadm.TopicsSet{}
		all.Add(topic, d.Partitions.Numbers()...)
		said, err := f.adm.DescribeProducers(ctx, all)
		for _, p := range said[topic].Partitions {
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

// close has each gap closed by a marker: of a commit if what is open was committed elsewhere, else
// of an abort.
func (f *idFence) close(ctx context.Context, gaps []gap) error {
	var abort, commit []gap
	for _, g := range gaps {
		if f.stillFenced[g] {
			commit = append(commit, g)
		} else {
			abort = append(abort, g)
		}
	}
	if err := f.mark(ctx, commit, true); err != nil {
		return err
	}
	return f.mark(ctx, abort, false)
}

// mark ends a transaction that has partitions and no records. Their leaders get its markers.
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

// lost wraps ErrUncertain into an answer that means that another process has initialised the id.
func (f *idFence) lost(err error) error {
	if IsFenced(err) {
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}

// tooOld reports whether an error is of a broker that does not know the request. It asks the
// brokers for their versions: if a broker that is down counted as too old, what is open on it would
// be aborted unseen.
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

// isPassing reports whether an error may be gone a little later. An answer that a broker would
// repeat is not.
func isPassing(err error) bool {
	if answer, ok := errors.AsType[*kerr.Error](err); ok {
		return answer.Retriable || errors.Is(err, kerr.ConcurrentTransactions)
	}
	return true
}
