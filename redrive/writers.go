package redrive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// writers are the two producers of a run, under transactional ids of the dead-letter topic, so that whoever has them initialised last
// has fenced all others. They are used in turn: a broker takes some 20 ms to finish a transaction before the same id can begin the
// next one, and the other one is filled meanwhile.
type writers struct {
	cl  [2]*kgo.Client
	txn [2]string // their transactional ids
}

// errUncertain is wrapped by errors of writing: what was written last may stand or not, and somebody else may have the run. The ledger
// says, after the ids were initialised again.
var errUncertain = errors.New("it is not known what was written last")

// uncertain is an error of writing after which a run takes itself back: all but what would be refused again.
func uncertain(err error) error {
	if _, denied := errors.AsType[*permission.DeniedError](err); denied || err == nil || isRefusal(err) || errors.Is(err, errUncertain) {
		return err
	}
	return fmt.Errorf("%w: %w", errUncertain, err)
}

func transactionalID(dlq string, which int) string {
	return "siding-redrive-" + dlq + [...]string{"-a", "-b"}[which]
}

// openWriters initialises the two ids: whatever others have open under them is aborted, and what they write next is refused.
func openWriters(ctx context.Context, kafka []kgo.Opt, dlq string, timeout time.Duration) (*writers, error) {
	w := &writers{}
	for i := range w.cl {
		w.txn[i] = transactionalID(dlq, i)
		opts := append([]kgo.Opt{
			kgo.ProducerLinger(0),
			kgo.MaxBufferedRecords(1 << 20),
			kgo.MaxBufferedBytes(256 << 20),
		}, kafka...)
		if timeout > txnTimeout { // a letter takes longer than the client gives a request
			opts = append(opts, kgo.RequestTimeoutOverhead(timeout))
		}
		cl, err := client.New(append(opts,
			kgo.TransactionalID(w.txn[i]),
			kgo.TransactionTimeout(timeout),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.RecordDeliveryTimeout(timeout),
			kgo.WithContext(context.WithoutCancel(ctx)),
		)...)
		if err != nil {
			w.close()
			return nil, err
		}
		w.cl[i] = cl
		if _, _, err := cl.ProducerID(ctx); err != nil {
			w.close()
			return nil, fmt.Errorf("initialise transactional id %q: %w", w.txn[i], permission.Denied("WRITE", "transactional-id", w.txn[i], err))
		}
	}
	return w, nil
}

// ids are the producer ids under which the run writes, and their epochs now: older ones are of those who had the run before.
func (w *writers) ids(ctx context.Context) (map[int64]int16, error) {
	ids := map[int64]int16{}
	for _, cl := range w.cl {
		id, epoch, err := cl.ProducerID(ctx)
		if err != nil {
			return nil, err
		}
		ids[id] = epoch
	}
	return ids, nil
}

func (w *writers) close() {
	for _, cl := range w.cl {
		if cl != nil {
			cl.Close()
		}
	}
}

// write writes records in a transaction of their own.
func (w *writers) write(ctx context.Context, which int, records ...*kgo.Record) error {
	cl := w.cl[which]
	if err := cl.BeginTransaction(); err != nil {
		return fmt.Errorf("begin: %w: %w", errUncertain, err)
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		_ = abort(cl)
		if isFenced(err) {
			err = fmt.Errorf("%w: %w", errUncertain, err)
		}
		return fmt.Errorf("write to the ledger: %w", permission.Denied("WRITE", "topic", records[0].Topic, err))
	}
	if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		_ = abort(cl)
		return fmt.Errorf("commit to the ledger: %w: %w", errUncertain, err)
	}
	return nil
}

// abort ends a transaction without what is in it. If the broker does not answer, its timeout does.
func abort(cl *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), txnTimeout/2)
	defer cancel()
	if err := cl.AbortBufferedRecords(ctx); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	return cl.EndTransaction(ctx, kgo.TryAbort)
}

// isFenced reports whether an error says that somebody else has initialised the transactional id.
func isFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.InvalidProducerIDMapping) ||
		errors.Is(err, kerr.InvalidTxnState) || errors.Is(err, kerr.TransactionalIDNotFound)
}
