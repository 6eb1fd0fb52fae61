package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Timeout bounds a transaction on the broker. After a crash, the open transaction blocks a target's
// readers for as long.
const Timeout = 10 * time.Second

// Writers are the two producers of a run, under transactional ids of the dead-letter topic. The
// process that initialised the ids last has fenced all others. The producers take turns: a broker
// takes some 20 ms to finish a transaction before its id can begin the next one, and meanwhile the
// other producer's transaction is filled.
type Writers struct {
	Clients [2]*kgo.Client
	codecs  [2]*client.Codec // nil unless the producers send records of any size
	txn     [2]string        // transactional ids
}

// ErrUncertain is wrapped by errors of writing. The last transaction may be committed or not, and
// another process may own the run. The ledger shows which, after the ids were initialised again.
var ErrUncertain = errors.New("it is unknown whether the last transaction was committed")

// ID returns the transactional id of one of the two producers of a dead-letter topic.
func ID(dlq string, which int) string {
	return "siding-redrive-" + dlq + [...]string{"-a", "-b"}[which]
}

// CheckIDs checks whether the user may use the two ids. Using them would take the run from its
// process, so it asks for their coordinators, which needs DESCRIBE. WRITE includes DESCRIBE. The
// claim refuses a user with DESCRIBE alone.
func CheckIDs(ctx context.Context, adm *kadm.Client, dlq string) error {
	var errs []error
	for _, c := range adm.FindTxnCoordinators(ctx, ID(dlq, 0), ID(dlq, 1)).Sorted() {
		// for any other error the run waits
		if errors.Is(c.Err, kerr.TransactionalIDAuthorizationFailed) {
			errs = append(errs, permission.Denied("WRITE", "transactional-id", c.Name, c.Err))
		}
	}
	return errors.Join(errs...)
}

// Open initialises the two ids. That aborts other processes' open transactions under them, and
// fences these processes. With large the producers send records of any size, see [Writers.Tighten].
func Open(ctx context.Context, kafka []kgo.Opt, dlq string, timeout time.Duration, large bool) (*Writers, error) {
	w := &Writers{}
	for i := range w.Clients {
		w.txn[i] = ID(dlq, i)
		opts := append([]kgo.Opt{
			kgo.ProducerLinger(0),
			kgo.MaxBufferedRecords(1 << 20),
			kgo.MaxBufferedBytes(256 << 20),
		}, kafka...)
		if timeout > Timeout { // a large letter needs more than the client's request timeout
			opts = append(opts, kgo.RequestTimeoutOverhead(timeout))
		}
		if large {
			codec, err := client.NewCodec(opts...)
			if err != nil {
				w.Close()
				return nil, err
			}
			w.codecs[i] = codec
			opts = append(opts, client.LargeBatches(), kgo.WithCompressor(codec))
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

// Tighten lets one of the two producers compress as far as brokers can read it, or no longer. Only
// producers that send records of any size can.
func (w *Writers) Tighten(which int, on bool) {
	if c := w.codecs[which]; c != nil {
		c.Tight.Store(on)
	}
}

// IDs returns the producer ids of the two producers with their epochs. Earlier owners of the run
// have older epochs.
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

// Close closes both clients.
func (w *Writers) Close() {
	for _, cl := range w.Clients {
		if cl != nil {
			cl.Close()
		}
	}
}

// Write writes records in one transaction.
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
		return fmt.Errorf("write to the ledger: %w", w.Denied(which, records[0].Topic, err))
	}
	if err := client.EndTransaction(ctx, cl, kgo.TryCommit, records...); err != nil {
		_ = Abort(cl)
		return fmt.Errorf("commit to the ledger: %w: %w", ErrUncertain, err)
	}
	return nil
}

// Denied names the permission that one of the two producers lacks to write to a topic: that on the
// topic, or that on its transactional id. It returns any other error unchanged.
func (w *Writers) Denied(which int, topic string, err error) error {
	if errors.Is(err, kerr.TransactionalIDAuthorizationFailed) {
		return permission.Denied("WRITE", "transactional-id", w.txn[which], err)
	}
	return permission.Denied("WRITE", "topic", topic, err)
}

// Abort aborts the open transaction of a client. If the broker does not answer, the transaction's
// timeout aborts it.
func Abort(cl *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout/2)
	defer cancel()
	if err := cl.AbortBufferedRecords(ctx); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	return cl.EndTransaction(ctx, kgo.TryAbort)
}

// IsFenced reports whether an error means that another process has initialised the transactional
// id.
func IsFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.InvalidProducerIDMapping) ||
		errors.Is(err, kerr.InvalidTxnState) || errors.Is(err, kerr.TransactionalIDNotFound)
}
