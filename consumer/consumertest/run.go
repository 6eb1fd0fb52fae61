package consumertest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// Run runs a consumer until the test ends or Stop ends it. The broker's options precede the
// configuration's own. Run returns when the consumer is ready. At the end of the test it checks
// that the consumer's Run returned without an error.
func (k *Kafka) Run(cfg consumer.Config) *Consumer {
	k.tb.Helper()
	c := k.Begin(cfg)
	patience := k.patience()
	select {
	case <-c.Ready():
	case <-c.done:
		c.seen.Store(true) // by the reader of this message
		k.tb.Fatalf("consumertest: Run: %v", c.err)
	case <-time.After(patience):
		k.tb.Fatalf("consumertest: the consumer was not ready within %v%s", patience, troubles(c.Health()))
	}
	return c
}

// troubles says what keeps a consumer from being ready.
func troubles(h consumer.Health) string {
	var b strings.Builder
	if !h.Group.Joined {
		b.WriteString("\n  it has not joined its group")
		if h.Group.Why != "" {
			b.WriteString(": " + h.Group.Why)
		}
	}
	for _, topic := range h.Missing {
		fmt.Fprintf(&b, "\n  topic %q does not exist", topic)
	}
	for _, l := range h.Lanes {
		if l.State == consumer.StateStarting {
			fmt.Fprintf(&b, "\n  %s/%d is starting: %s", l.Topic, l.Partition, l.Why)
		}
	}
	return b.String()
}

// Begin is Run without waiting until the consumer is ready.
func (k *Kafka) Begin(cfg consumer.Config) *Consumer {
	k.tb.Helper()
	cfg.Kafka = append(k.Opts(), cfg.Kafka...)
	if cfg.Handler != nil {
		cfg.Handler = k.journal.watch(unchanged(k.tb, cfg.Handler), cfg.ErrorText)
	}
	cfg.Hooks = append(slices.Clip(cfg.Hooks), discardHook{k.journal, cfg})
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(k.tb.Output(), nil)) // shown if the test fails
	}
	inner, err := consumer.New(cfg)
	if err != nil {
		k.tb.Fatalf("consumertest: %v", err)
	}
	k.learn(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	c := &Consumer{Consumer: inner, tb: k.tb, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = inner.Run(ctx)
	}()
	k.tb.Cleanup(func() {
		if err := c.Stop(); err != nil && !c.seen.Load() {
			k.tb.Errorf("consumertest: Run: %v", err)
		}
	})
	return c
}

// learn records which siblings belong to the sources.
func (k *Kafka) learn(cfg consumer.Config) {
	k.tb.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, topic := range cfg.Topics {
		p := policyOf(cfg, topic)
		k.awaitRetries(p)
		s, err := cfg.Naming.Siblings(topic, cfg.Group, p.Delays()...)
		if err != nil {
			k.tb.Fatalf("consumertest: %v", err)
		}
		now := consumed{append([]string{cfg.Group}, cfg.FormerGroups...), s.Tiers, []string{s.DLQ}, map[string]string{s.DLQ: s.Ledger}}
		before := k.siblings[topic]
		for _, tier := range before.tiers {
			if !slices.Contains(now.tiers, tier) {
				now.tiers = append(now.tiers, tier)
			}
		}
		for _, dlq := range before.dlqs {
			if !slices.Contains(now.dlqs, dlq) {
				now.dlqs = append(now.dlqs, dlq)
				now.ledger[dlq] = before.ledger[dlq]
			}
		}
		k.siblings[topic] = now
		if !slices.Contains(k.groups[topic], cfg.Group) {
			k.groups[topic] = append(k.groups[topic], cfg.Group)
		}
	}
}

func policyOf(cfg consumer.Config, topic string) consumer.Policy {
	if p, ok := cfg.Policies[topic]; ok {
		return p
	}
	return cfg.Policy
}

// longestRetries bounds how long Patience waits for a policy, which may retry for ever.
const longestRetries = 7 * 24 * time.Hour

// awaitRetries makes Patience outlast the retries of a policy, unless the test has set it.
func (k *Kafka) awaitRetries(p consumer.Policy) {
	more := min(p.RetryTime(), longestRetries) - k.extra
	if more <= 0 || k.Patience != k.own {
		return
	}
	k.extra += more
	k.own += more
	k.Patience = k.own
}

// Consumer is a running consumer. Several goroutines may end it, and wait for its end.
type Consumer struct {
	*consumer.Consumer
	tb     testing.TB
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	seen   atomic.Bool
}

// Stop ends the consumer, waits until it has drained, and returns the error of its Run.
func (c *Consumer) Stop() error {
	c.cancel()
	<-c.done
	return c.err
}

// Err is Stop for a test that expects an error: the end of the test does not report it again.
func (c *Consumer) Err() error {
	c.seen.Store(true)
	return c.Stop()
}

// Wait is Err without ending the consumer: it waits until Run returns by itself.
func (c *Consumer) Wait() error {
	c.seen.Store(true)
	<-c.done
	return c.err
}

// journal records the handlers' calls, by the position where the record was first read.
type journal struct {
	mu        sync.Mutex
	handled   map[position]int
	discarded map[position][]string // the classes
	noted     map[position]string   // by which group, of those that have to have a note
	calls     map[position]*call
	changed   chan struct{} // closed and replaced when a record was handled or discarded
}

type position struct {
	topic     string
	partition int32
	offset    int64
}

func positionOf(r *kgo.Record) position      { return position{r.Topic, r.Partition, r.Offset} }
func originalOf(p headers.Position) position { return position{p.Topic, p.Partition, p.Offset} }

// compare orders positions.
func (p position) compare(q position) int {
	return cmp.Or(strings.Compare(p.topic, q.topic), cmp.Compare(p.partition, q.partition), cmp.Compare(p.offset, q.offset))
}

func (p position) String() string { return fmt.Sprintf("%s/%d/%d", p.topic, p.partition, p.offset) }

func newJournal() *journal {
	return &journal{handled: map[position]int{}, discarded: map[position][]string{}, noted: map[position]string{}, calls: map[position]*call{}, changed: make(chan struct{})}
}

// watch records the calls of a handler, and how they ended. A failed assertion shows an error as
// the consumer does.
func (j *journal) watch(h consumer.Handler, shown func(error) string) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) (err error) {
		delivery := consumer.DeliveryOf(ctx, r)
		at := originalOf(delivery.Original)
		j.mu.Lock()
		if j.calls[at] == nil {
			j.calls[at] = &call{}
		}
		c := j.calls[at]
		c.times++
		c.attempt, c.at, c.ended = delivery.Attempt, originalOf(delivery.Physical), ""
		j.mu.Unlock()
		ended := "panicked"
		defer func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			c.ended = ended
		}()
		if err = h(ctx, r); err != nil {
			ended = "returned the error: " + errorText(err, shown)
			return err
		}
		ended = "returned nil"
		j.mu.Lock()
		defer j.mu.Unlock()
		j.handled[at]++
		j.change()
		return nil
	}
}

// mostText bounds an error's text in a message, in bytes.
const mostText = 1000

// errorText returns the text of an error for a message: that of Config.ErrorText, if it is set. A
// panic has none, as it may have the text that was to be hidden.
func errorText(err error, shown func(error) string) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("no text: its method or Config.ErrorText panicked with a %T", v)
		}
	}()
	if shown == nil {
		shown = error.Error
	}
	if s = shown(err); len(s) > mostText {
		s = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:mostText], ""), len(s))
	}
	return s
}

// change wakes the assertions: something happened.
func (j *journal) change() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// discardHook is the hook of one consumer.
type discardHook struct {
	*journal
	cfg consumer.Config
}

// OnDiscarded records that a handler or a policy discarded a record.
func (d discardHook) OnDiscarded(e consumer.Routed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := positionOf(e.Record)
	d.discarded[at] = append(d.discarded[at], e.Meta.Class)
	if policyOf(d.cfg, at.topic).NoteDiscards {
		d.noted[at] = d.cfg.Group
	}
	d.change()
}

// addTo counts how often the record of a position was handled and discarded.
func (j *journal) addTo(p *places, at position) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p.handled += j.handled[at]
	p.discarded += len(j.discarded[at])
}

func (j *journal) times(at position) (int, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.handled[at], j.changed
}

// discards returns the classes with which a record was discarded.
func (j *journal) discards(at position) ([]string, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.discarded[at]), j.changed
}

// notedOf returns the records of a source that have to have a note in the ledger, each with the
// group that discarded it.
func (j *journal) notedOf(source string) map[position]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := maps.Clone(j.noted)
	maps.DeleteFunc(all, func(at position, _ string) bool { return at.topic != source })
	return all
}

// forget drops what was handled or discarded of a topic.
func (j *journal) forget(topic string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.handled, func(at position, _ int) bool { return at.topic == topic })
	maps.DeleteFunc(j.discarded, func(at position, _ []string) bool { return at.topic == topic })
	maps.DeleteFunc(j.noted, func(at position, _ string) bool { return at.topic == topic })
	maps.DeleteFunc(j.calls, func(at position, _ *call) bool { return at.topic == topic })
}
