package apply

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/metric"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// retainsAtOnce bounds how many topics are pruned at the same time: one whose storage is silent
// does not hold up the others.
const retainsAtOnce = 3

// RetainerConfig is what a [Retainer] depends on.
type RetainerConfig struct {
	Kafka   []kgo.Opt
	S3      archive.S3
	Cluster *watch.Cluster
	Desk    *operate.Desk
	Limits  func(topic string) Limits // of a topic that has a retention
	Meter   metric.Meter
	Log     *slog.Logger
}

// Retainer deletes letters by age and number, and archives them before. It is safe for concurrent
// use.
type Retainer struct {
	cfg       RetainerConfig
	meters    *retentionMeters
	retaining chan struct{} // has a place for each retention that is being applied
	topics    sync.Map      // of *retained, by topic
}

// NewRetainer returns a retainer.
func NewRetainer(cfg RetainerConfig) (*Retainer, error) {
	meters, err := newRetentionMeters(cfg.Meter)
	return &Retainer{cfg: cfg, meters: meters, retaining: make(chan struct{}, retainsAtOnce)}, err
}

// retained is what is known of the retention of one topic, which one call at a time applies.
type retained struct {
	turn chan struct{} // has one element during a call
	busy atomic.Bool   // the server applies it by the clock

	next atomic.Int64 // when the topic is judged again, in Unix nanoseconds
	// letters that stay though they are beyond the limits, when it was last judged
	held atomic.Int64
}

// of returns what is known of the retention of a topic.
func (k *Retainer) of(t *watch.Topic) *retained {
	r, _ := k.topics.LoadOrStore(t.DeadLetterTopic.Topic, &retained{turn: make(chan struct{}, 1)})
	return r.(*retained)
}

// Held returns how many letters stay though they are beyond the limits; false if the topic has no
// retention, or was not judged yet.
func (k *Retainer) Held(t *watch.Topic) (n int64, known bool) {
	r := k.of(t)
	return r.held.Load(), t.Settings.Retains && r.next.Load() > 0
}

// alone waits until no other call goes on, and keeps further ones waiting until release is called.
func (r *retained) alone(ctx context.Context) (release func(), err error) {
	select {
	case r.turn <- struct{}{}:
		return func() { <-r.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w, and did not end in time: nothing was deleted; ask again later, in an hour at most: %w", failure.ErrRetentionGoesOn, context.Cause(ctx))
	}
}

func (r *retained) isDue(now time.Time) bool { return now.UnixNano() >= r.next.Load() }

// toRetain is what a retention has to do.
type toRetain struct {
	ledger   *dlq.Ledger
	prunable *dlq.Prunable
	expiring expiring
}

// archive writes letters to a folder. least is how many there have to be.
func (k *Retainer) archive(ctx context.Context, t *watch.Topic, folder *archive.Target, c dlq.Cursor, least int64) (*archive.Archive, error) {
	name := t.DeadLetterTopic.Topic
	c.Topic = name
	return folder.Write(ctx, name, "", func(w io.Writer) (int64, error) {
		n, err := dlq.Export(w, dlq.Read(ctx, name, dlq.Filter{}, c, k.cfg.Kafka...))
		if err == nil && n < least {
			err = fmt.Errorf("the retention of Kafka deleted %s meanwhile; the server tries again", number.Of(least-n, "letter"))
		}
		return n, err
	})
}

// produce writes a note of the topic to its ledger.
func (k *Retainer) produce(ctx context.Context, r *kgo.Record) error {
	cl, err := client.New(append(k.cfg.Kafka[:len(k.cfg.Kafka):len(k.cfg.Kafka)], kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return cl.ProduceSync(ctx, r).FirstErr()
}
