package txn

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

// Timeout bounds a transaction on the broker: what a process that died left open holds back the
// readers of a target for as long.
const Timeout = 10 * time.Second

// Writers are the two producers of a run, under transactional ids of the dead-letter topic, so that
// whoever has them initialised last has fenced all others. They are used in turn: a broker takes
// some 20 ms to finish a transaction before the same id can begin the next one, and the other one
// is filled meanwhile.
type Writers struct {
	Clients [2]*kgo.Client
	txn     [2]string // their transactional ids
}

// ErrUncertain is wrapped by errors of writing: what was written last may stand or not, and
// somebody else may have the run. The ledger says, after the ids were initialised again.
var ErrUncertain = errors.New("it is not known what was written last")

func ID(dlq string, which int) string {
	return "siding-redrive-" + dlq + [...]string{"-a", "-b"}[which]
}

// Open initialises the two ids: whatever others have open under them is aborted, and what they
// write next is refused.
func Open(ctx context.Context, kafka []kgo.Opt, dlq string, timeout time.Duration) (*Writers, error) {
	w := &Writers{}
	for i := range w.Clients {
		w.txn[i] = ID(dlq, i)
		opts := append([]kgo.Opt{
			kgo.ProducerLinger(0),
			kgo.MaxBufferedRecords(1 << 20),
			kgo.MaxBufferedBytes(256 << 20),
		}, kafka...)
		if timeout > Timeout { // a letter takes longer than the client gives a request
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
			w.Close()
			return nil, err
		}
		w.Clients[i] = cl
		if _, _, err := cl.ProducerID(ctx); err != nil {
			w.Close()
			return nil, fmt.Errorf("initialise transactional id %q: %w", w.txn[i], permission.Denied("WRITE", "transactional-id", w.txn[i], err))
		}
	}
	return w, nil
}

// IDs are the producer ids under which the run writes, and their epochs now: older ones are of
// those who had the run before.
func (w *Writers) IDs(ctx context.Context) (map[int64]int16, error) {
	ids := map[int64]int16{}
	for _, cl := range w.Clients {
		id, epoch, err := cl.ProducerID(ctx)
		if err != nil {
			return nil, err
		}
		ids[id] = epoch
	}
	return ids, nil
}

func (w *Writers) Close() {
	for _, cl := range w.Clients {
		if cl != nil {
			cl.Close()
		}
	}
}

// Write writes records in a transaction of their own.
func (w *Writers) Write(ctx context.Context, which int, records ...*kgo.Record) error {
	cl := w.Clients[which]
	if err := cl.BeginTransaction(); err != nil {
		return fmt.Errorf("begin: %w: %w", ErrUncertain, err)
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		_ = Abort(cl)
		if IsFenced(err) {
			err = fmt.Errorf("%w: %w", ErrUncertain, err)
		}
		return fmt.Errorf("write to the ledger: %w", permission.Denied("WRITE", "topic", records[0].Topic, err))
	}
	if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		_ = Abort(cl)
		return fmt.Errorf("commit to the ledger: %w: %w", ErrUncertain, err)
	}
	return nil
}

// Abort ends a transaction without what is in it. If the broker does not answer, its timeout does.
func Abort(cl *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout/2)
	defer cancel()
	if err := cl.AbortBufferedRecords(ctx); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	return cl.EndTransaction(ctx, kgo.TryAbort)
}

// IsFenced reports whether an error says that somebody else has initialised the transactional id.
func IsFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.InvalidProducerIDMapping) ||
		errors.Is(err, kerr.InvalidTxnState) || errors.Is(err, kerr.TransactionalIDNotFound)
}
