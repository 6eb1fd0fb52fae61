package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// ways are what a handler does with a record, run by run, and the final state of its letter.
var ways = []struct {
	does string // a letter for each run; the last one is repeated
	ends dlq.State
}{
	{"s", dlq.Succeeded},
	{"s", dlq.Succeeded},
	{"f", dlq.Failed},
	{"d", dlq.Discarded},
	{"rs", dlq.Succeeded},
	{"rrs", dlq.Succeeded},
	{"rf", dlq.Failed},
	{"rd", dlq.Discarded},
	{"r", dlq.Failed},
	{"l", dlq.Redriven},
	{"rl", dlq.Redriven},
	{"p", dlq.Failed},
}

// journal is a handler that records what it did.
type journal struct {
	mu   sync.Mutex
	way  map[string]int
	did  map[string]string
	seed *rand.Rand
}

func (j *journal) handle(_ context.Context, r *kgo.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := fmt.Sprintf("%d/%d", r.Partition, r.Offset)
	if _, ok := j.way[at]; !ok {
		j.way[at] = j.seed.IntN(len(ways))
	}
	does := ways[j.way[at]].does
	step := does[min(len(j.did[at]), len(does)-1)]
	j.did[at] += string(step)
	switch step {
	case 'f':
		return classify.Terminal(classify.As(errors.New("no such SKU"), "sku"))
	case 'd':
		return classify.Discard(errors.New("not ours"))
	case 'r':
		return classify.Retryable(errors.New("busy"))
	case 'l':
		return classify.RetryAfter(errors.New("come back"), time.Hour)
	case 'p':
		panic("out of range")
	}
	return nil
}

func TestOutcomes_AgreeWithTheHandlersJournal(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, seed := range cases.Seeds(4) {
		virtual(t, fmt.Sprint(seed), func(t *testing.T, k *consumertest.Kafka) {
			k.CreateTopic("orders", 3)
			var s switched
			s.set(failing("tax"))
			k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: s.handle, Policy: consumer.Policy{
				// A record that asks for a wait of an hour gets a tier of its own: an outcome is
				// known when all letters before it are finished.
				Tiers: []time.Duration{5 * time.Second, 30 * time.Second, 35 * time.Second, 2 * time.Hour}, MaxAttempts: 3,
			}})
			var records []*kgo.Record
			for i := range 60 {
				records = append(records, &kgo.Record{Topic: "orders", Key: fmt.Append(nil, i), Value: fmt.Append(nil, i)})
			}
			allDeadLettered(k, k.Produce(records...))
			j := &journal{way: map[string]int{}, did: map[string]string{}, seed: rand.New(rand.NewPCG(seed, 1))}
			s.set(j.handle)
			r := redriver(t, k)
			o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: -1, Tolerate: 1000, Window: 3 * time.Minute}, nil))
			if err != nil {
				t.Fatal(err)
			}
			j.mu.Lock()
			defer j.mu.Unlock()
			ledger := ledgerOf(k)
			says, open := map[string]dlq.State{}, map[string]bool{}
			for l, err := range ledger.Letters(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.WithResolved) {
				if err != nil {
					t.Fatal(err)
				}
				at := fmt.Sprintf("%d/%d", l.Meta.Original.Partition, l.Meta.Original.Offset)
				if l.Meta.Redrive.ID == "" {
					says[at] = l.State
					continue
				}
				if open[at] || l.State != "" || l.Meta.Redrive.Count != 1 {
					t.Errorf("%s came back as %q, %d times brought back", at, l.State, l.Meta.Redrive.Count)
				}
				open[at] = true
			}
			count := map[dlq.State]int64{}
			for _, at := range slices.Sorted(maps.Keys(j.did)) {
				way := ways[j.way[at]]
				count[way.ends]++
				if says[at] != way.ends || open[at] != (way.ends == dlq.Failed) {
					t.Errorf("%s: the handler did %q, and the ledger says %q", at, j.did[at], says[at])
				}
			}
			c := o.Counts
			if len(j.did) != 60 || c.Sent != 60 || c.Succeeded != count[dlq.Succeeded] || c.Failed != count[dlq.Failed] || c.Discarded != count[dlq.Discarded] ||
				c.Pending != count[dlq.Redriven] || c.Retrying != c.Pending || c.Unknown != 0 {
				t.Errorf("of %d records the handler says %v, and the run %+v", len(j.did), count, c)
			}
			if n := len(open); n != int(c.Failed) || c.FailedByClass["sku"] == 0 || c.FailedByClass["panic.string"] == 0 {
				t.Errorf("%d letters came back: %v", n, c.FailedByClass)
			}
		})
	}
}
