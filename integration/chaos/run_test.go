package chaos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/member"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

func TestMain(m *testing.M) {
	for _, d := range defects {
		if d.member != nil {
			memberDefects[d.name] = d.member
		}
		if d.broker != nil {
			brokerDefects[d.name] = d.broker
		}
	}
	Child(Config{})
	os.Exit(m.Run())
}

// defect is a fault of a consumer, or one that has the same effect, and the rule that has to find
// it.
type defect struct {
	name, what, rule string
	only             []string      // faults
	lasts            time.Duration // the first run; default 5 s
	rate             int           // records a second; default 200
	poisons          int
	quick            bool // one of each kind, which runs without SIDING_LONG
	member           func(*consumer.Config)
	broker           func(*kfake.Cluster)
}

var defects = []defect{
	{
		name: "skipped-offset", what: "a commit passes records that nobody has run", rule: "committed", quick: true, only: []string{"kill"},
		broker: onCommit(func(_ string, p *kmsg.OffsetCommitRequestTopicPartition) { p.Offset += 3 }),
	},
	{
		name: "skipped-then-killed", what: "the same, and the process is killed: the records never run", rule: "conserved", only: []string{"kill"},
		broker: onCommit(func(_ string, p *kmsg.OffsetCommitRequestTopicPartition) { p.Offset += 50 }),
	},
	{
		name: "ahead-of-the-forward", what: "an offset is committed before the copy of its record is written", rule: "committed", only: []string{"dlq"},
		broker: onCommit(func(_ string, p *kmsg.OffsetCommitRequestTopicPartition) { p.Offset++ }),
	},
	{
		name: "lost-copy", what: "an offset is committed, and the copy of its record is never written", rule: "conserved", quick: true, only: []string{"term"},
		broker: onProduce(swallow(func(topic string, _ int32) bool { return strings.Contains(topic, ".retry.") })),
	},
	{
		name: "lost-lane", what: "a process commits an old floor for a lane that it lost, over the new owner's", rule: "rewound", only: []string{"join"},
		broker: staleCommits(),
	},
	{
		name: "early", what: "a retry runs before it is due", rule: "early", quick: true, only: []string{"term"},
		member: func(c *consumer.Config) { c.Kafka = append(c.Kafka, kgo.WithHooks(hasty{})) },
	},
	{
		name: "two-at-once", what: "two records of a partition, or of a key, run at the same time", rule: "order", quick: true, only: []string{"term"},
		member: func(c *consumer.Config) { c.Order = consumer.OrderNone },
	},
	{
		name: "missing-completion", what: "records finish, and their floor does not learn of it", rule: "stuck", only: []string{"term"},
		broker: onCommit(func(topic string, p *kmsg.OffsetCommitRequestTopicPartition) {
			if p.Partition == 1 {
				p.Offset = min(p.Offset, 5)
			}
		}),
	},
	{
		name: "false-completion", what: "a commit's metadata names records as finished that have not run", rule: "committed", quick: true, only: []string{"kill"},
		broker: onCommit(func(_ string, p *kmsg.OffsetCommitRequestTopicPartition) {
			p.Metadata = kmsg.StringPtr("siding 1 b=/w")
		}),
	},
	{
		name: "forgotten-completion", what: "a commit's metadata leaves out what is finished above the offset", rule: "prompt", only: []string{noFault}, lasts: 12 * time.Second, rate: 1000,
		// A record that hangs for as long holds up its floor.
		member: func(c *consumer.Config) { c.Policy.HandlerTimeout = 9 * time.Second },
		broker: onCommit(func(_ string, p *kmsg.OffsetCommitRequestTopicPartition) { p.Metadata = kmsg.StringPtr("siding") }),
	},
	{
		name: "lost-entry", what: "a letter is redriven, and the ledger's entry about it is lost", rule: "ledger", only: []string{"redrive"}, lasts: 20 * time.Second,
		broker: onProduce(swallow(func(topic string, p int32) bool { return strings.HasSuffix(topic, ".ledger") && p != 0 })),
	},
	{
		name: "one-attempt-more", what: "a record is tried more often than its policy says", rule: "attempts", only: []string{"term"},
		member: func(c *consumer.Config) { c.Policy.MaxAttempts++ },
	},
	{
		name: "changed-value", what: "a copy has another value than its record", rule: "headers", quick: true, only: []string{"term"},
		member: func(c *consumer.Config) {
			c.Kafka = append(c.Kafka, kgo.ProducerBatchCompression(kgo.NoCompression()))
		},
		broker: onProduce(changeValues),
	},
	{
		name: "deaf-metrics", what: "metrics miss what the handlers did", rule: "metrics", only: []string{"term"},
		member: func(c *consumer.Config) { c.MeterProvider = sdkmetric.NewMeterProvider() },
	},
	{
		name: "run-twice", what: "a record runs again in a lane that has not ended, while members come and go", rule: "repeated", quick: true, only: []string{"join"}, lasts: 8 * time.Second,
		member: func(c *consumer.Config) {
			handle := c.Handler
			c.Handler = func(ctx context.Context, r *kgo.Record) error {
				if err := handle(ctx, r); err != nil {
					return err
				}
				return handle(ctx, r)
			}
		},
	},
	{
		name: "lost-last-commit", what: "a lane is handed over, and its last records are not committed", rule: "repeated", only: []string{"term"},
		broker: onCommit(func(_ string, p *kmsg.OffsetCommitRequestTopicPartition) {
			p.Offset, p.Metadata = max(0, p.Offset-10), kmsg.StringPtr("siding")
		}),
	},
	{
		name: "innocent-condemned", what: "a record that kills nothing is taken for one that does", rule: "crash-loop", only: []string{"term"},
		broker: onCommit(func(_ string, p *kmsg.OffsetCommitRequestTopicPartition) {
			p.Metadata = kmsg.StringPtr("siding 1 p=zz n=2 s=5 x=0")
		}),
	},
	{
		name: "one-death-more", what: "a record kills more processes than it may", rule: "crash-loop", only: []string{noFault}, rate: 1000, poisons: 1,
		member: func(c *consumer.Config) { c.Policy.CrashLimit = 5 },
	},
	{
		name: "no-breaker", what: "records fail in an outage as often as their policy lets them", rule: "outage", only: []string{"outage"}, lasts: 8 * time.Second, rate: 400,
		member: func(c *consumer.Config) { c.Policy.Breaker.Off, c.Policy.RetryBudget.Off = true, true },
	},
	{
		name: "costly-probe", what: "a probe of the breaker that fails costs its record an attempt", rule: "outage", only: []string{"outage"}, lasts: 8 * time.Second, rate: 400,
		member: func(c *consumer.Config) {
			state, handle := new(breakerState), c.Handler
			c.Hooks = append(c.Hooks, state)
			c.Handler = func(ctx context.Context, r *kgo.Record) error {
				err := handle(ctx, r)
				if errors.Is(err, member.ErrDown) && state.open.Load() {
					return classify.As(classify.Terminal(member.ErrDown), trace.ClassOutage)
				}
				return err
			}
		},
	},
	{
		name: "one-for-all", what: "a handler that is stuck in one lane holds up the others", rule: "lanes", only: []string{"stuck"}, lasts: 24 * time.Second, rate: 400,
		member: func(c *consumer.Config) {
			handle, turn := c.Handler, new(sync.RWMutex)
			c.Handler = func(ctx context.Context, r *kgo.Record) error {
				if s, ok := trace.ParseScript(r.Headers); ok && s.Act == trace.ActStuck {
					turn.Lock()
					defer turn.Unlock()
				} else {
					turn.RLock()
					defer turn.RUnlock()
				}
				return handle(ctx, r)
			}
		},
	},
	{
		name: "talker", what: "the log has the value of a record", rule: "leaks", quick: true, only: []string{"term"},
		member: func(c *consumer.Config) {
			handle, log := c.Handler, c.Logger
			c.Handler = func(ctx context.Context, r *kgo.Record) error {
				log.DebugContext(ctx, "handling", "value", r.Value)
				return handle(ctx, r)
			}
		},
	},
}

// breakerState has the state of a member's breaker.
type breakerState struct{ open atomic.Bool }

// OnBreaker is called by the consumer.
func (s *breakerState) OnBreaker(c consumer.BreakerChange) { s.open.Store(c.To == "held") }

// hasty makes a client see due times that are long past.
type hasty struct{}

func (hasty) OnFetchRecordBuffered(r *kgo.Record) {
	for i, h := range r.Headers {
		if h.Key == headers.NotBefore {
			r.Headers[i].Value = []byte("1000000000000")
		}
	}
}

// onProduce has a look at each request with records, by the names of its topics. It may answer.
func onProduce(do func(req *kmsg.ProduceRequest, topic func(*kmsg.ProduceRequestTopic) string) kmsg.Response) func(*kfake.Cluster) {
	return func(c *kfake.Cluster) {
		name := func(t *kmsg.ProduceRequestTopic) string {
			if t.Topic != "" {
				return t.Topic
			}
			if info := c.TopicIDInfo(t.TopicID); info != nil {
				return info.Topic
			}
			return ""
		}
		c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			if resp := do(r.(*kmsg.ProduceRequest), name); resp != nil {
				c.KeepControl()
				return resp, nil, true
			}
			return nil, nil, false
		})
	}
}

// swallow answers that records for some partitions are written, and forgets them. It does so to the
// first requests that have none for other partitions.
func swallow(these func(topic string, partition int32) bool) func(*kmsg.ProduceRequest, func(*kmsg.ProduceRequestTopic) string) kmsg.Response {
	n := 0
	return func(req *kmsg.ProduceRequest, topic func(*kmsg.ProduceRequestTopic) string) kmsg.Response {
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for i := range req.Topics {
			t := kmsg.NewProduceResponseTopic()
			t.Topic, t.TopicID = req.Topics[i].Topic, req.Topics[i].TopicID
			for _, p := range req.Topics[i].Partitions {
				if !these(topic(&req.Topics[i]), p.Partition) {
					return nil
				}
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.BaseOffset = p.Partition, 1<<40
				t.Partitions = append(t.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, t)
		}
		if n++; n > 20 {
			return nil
		}
		return resp
	}
}

// changeValues changes the values in batches for retry topics.
func changeValues(req *kmsg.ProduceRequest, topic func(*kmsg.ProduceRequestTopic) string) kmsg.Response {
	for i := range req.Topics {
		if !strings.Contains(topic(&req.Topics[i]), ".retry.") {
			continue
		}
		for j := range req.Topics[i].Partitions {
			p := &req.Topics[i].Partitions[j]
			batch := bytes.ReplaceAll(p.Records, []byte("value of record"), []byte("VALUE of record"))
			binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
			p.Records = batch
		}
	}
	return nil
}

// onCommit changes what the broker understands of commits.
func onCommit(change func(topic string, p *kmsg.OffsetCommitRequestTopicPartition)) func(*kfake.Cluster) {
	return func(c *kfake.Cluster) {
		c.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
			req := r.(*kmsg.OffsetCommitRequest)
			for i := range req.Topics {
				t := &req.Topics[i]
				for j := range t.Partitions {
					change(fmt.Sprint(t.Topic, t.TopicID), &t.Partitions[j])
				}
			}
			return nil, nil, false
		})
	}
}

// staleCommits puts the floor of some seconds ago in the place of every tenth commit.
func staleCommits() func(*kfake.Cluster) {
	type at struct {
		topic     string
		partition int32
	}
	first, n := map[at]int64{}, 0
	return onCommit(func(topic string, p *kmsg.OffsetCommitRequestTopicPartition) {
		k := at{topic, p.Partition}
		if _, ok := first[k]; !ok {
			first[k] = p.Offset
		}
		if n++; n%10 == 0 {
			p.Offset = first[k]
		}
	})
}

// atOnce bounds the runs that the tests make at the same time: each has five processes.
var atOnce = make(chan struct{}, 6)

// makeRun makes a short run.
func makeRun(t *testing.T, cfg Config) *Report {
	t.Helper()
	atOnce <- struct{}{}
	defer func() { <-atOnce }()
	began := time.Now()
	var log bytes.Buffer
	cfg.Dir, cfg.Log = t.TempDir(), &log
	cfg.Poisons = cmp.Or(cfg.Poisons, -1)
	rep, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("%v took %v\n%s", cfg.Duration, time.Since(began).Round(100*time.Millisecond), &log)
		rep.print(t.Output())
	}
	return rep
}

// A checker that finds nothing proves nothing: each defect has to be found, by its rule. A run is
// as short as it takes on a calm machine. On a busy one less happens in a run, so one that shows
// nothing is followed by one that lasts twice as long.
func TestRun_FindsDefects(t *testing.T) {
	t.Parallel()
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			if !d.quick && os.Getenv("SIDING_LONG") == "" {
				t.Skip("make integration LONG=1 runs it")
			}
			t.Parallel()
			cfg := Config{
				Seed: 3, Rate: cmp.Or(d.rate, 200), Only: d.only, Poisons: d.poisons, defect: d.name,
				Duration: cmp.Or(d.lasts, 5*time.Second), margin: 1500 * time.Millisecond, settles: 8 * time.Second, recovers: 8 * time.Second,
			}
			for ; ; cfg.Duration *= 2 {
				rep := makeRun(t, cfg)
				if slices.ContainsFunc(rep.Broken, func(v Violation) bool { return v.Rule == d.rule }) {
					return
				}
				if cfg.Duration >= 40*time.Second {
					t.Errorf("%s: rule %s did not find it; verdict: %s", d.what, d.rule, rep.Verdict)
					rep.print(t.Output())
					return
				}
				t.Logf("rule %s did not find it in %v; verdict: %s", d.rule, cfg.Duration, rep.Verdict)
			}
		})
	}
}

// A checker that finds something where there is nothing is not believed.
func TestRun_HoldsWithoutDefects(t *testing.T) {
	t.Parallel()
	rep := makeRun(t, Config{Seed: 3, Duration: 18 * time.Second, margin: 1500 * time.Millisecond, Rate: 500, Only: []string{"kill", "term", "join", "cut"}})
	if len(rep.Broken) > 0 {
		rep.print(t.Output())
		t.Error(rep.Verdict)
	}
}
