package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pollSource moves source records from the group client to their lanes. It never waits for a lane: one that is full has
// its fetch paused.
//
// kgo lets no rebalance through between a poll that returned records and AllowRebalance, so what is dispatched belongs to
// lanes that were assigned when it was polled.
func (c *Consumer) pollSource(ctx context.Context) {
	defer c.group.AllowRebalance()
	var full []*feed
	var lost []outOfRange
	for ctx.Err() == nil {
		poll, cancel := c.source.begin(ctx)
		fetches := c.group.PollFetches(poll)
		cancel()
		full, lost = full[:0], lost[:0]
		for i := range fetches {
			for j := range fetches[i].Topics {
				t := &fetches[i].Topics[j]
				for k := range t.Partitions {
					p := &t.Partitions[k]
					if p.Err != nil {
						if o, ok := isOutOfRange(t.Topic, p.Partition, p.Err); ok {
							lost = append(lost, o)
						} else {
							var source *feed
							if l := c.lane(t.Topic, p.Partition); l != nil {
								source = l.source()
							}
							c.fetchError(ctx, source, t.Topic, p.Partition, p.Err)
						}
					}
					if len(p.Records) == 0 {
						continue
					}
					if l := c.lane(t.Topic, p.Partition); l != nil && l.source().offerSource(p.Records) {
						full = append(full, l.source())
					}
				}
			}
		}
		c.sourceGate.sync(full...)
		c.moveSources(lost)
		if len(fetches) > 0 { // else kgo lets rebalances through
			c.source.run()
		}
		c.group.AllowRebalance()
	}
}

// sourcePoll takes what others want done on the source's poll loop: while it has nothing in hand and no rebalance is let
// through, so that a partition can be set to another offset and its lane replaced in one.
type sourcePoll struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	todo   []func()
}

// begin returns the context of the next poll.
func (p *sourcePoll) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	poll, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = cancel
	if len(p.todo) > 0 {
		cancel()
	}
	return poll, cancel
}

// do has f run on the poll loop, soon; it does not wait. What is left when the loop ends does not run.
func (p *sourcePoll) do(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.todo = append(p.todo, f)
	if p.cancel != nil {
		p.cancel()
	}
}

func (p *sourcePoll) run() {
	p.mu.Lock()
	todo := p.todo
	p.todo = nil
	p.mu.Unlock()
	for _, f := range todo {
		f()
	}
}

// retryPoll moves records from the retry client to their lanes, and changes which partitions that client reads.
//
// Nothing in kgo keeps a direct client's poll from returning records of a partition that is taken off and put on again,
// at an earlier offset, before they are dispatched. A new lane would take them for its first, and refuse those in between
// as repetitions: lost. So a change waits until the loop has nothing in hand.
type retryPoll struct {
	c      *Consumer
	client *kgo.Client

	mu      sync.Mutex // held while records are dispatched, and while partitions are changed
	cancel  context.CancelFunc
	waiting int
	idle    *sync.Cond // signalled when the loop has nothing in hand and lets changes through
	inHand  bool
	byFeed  map[topicPartition]*feed
	done    bool

	clearing map[string]int // topics that the client is about to forget, see reread
}

func newRetryPoll(c *Consumer, client *kgo.Client) *retryPoll {
	p := &retryPoll{c: c, client: client, byFeed: map[topicPartition]*feed{}, cancel: func() {}, clearing: map[string]int{}}
	p.idle = sync.NewCond(&p.mu)
	return p
}

func (p *retryPoll) loop(ctx context.Context) {
	defer func() {
		p.mu.Lock()
		p.done = true
		p.idle.Broadcast()
		p.mu.Unlock()
	}()
	for ctx.Err() == nil {
		p.mu.Lock()
		for p.waiting > 0 {
			p.idle.Wait() // changes go first; the last of them wakes the loop
		}
		p.inHand = true
		poll, cancel := context.WithCancel(ctx)
		p.cancel = cancel
		p.mu.Unlock()

		fetches := p.client.PollRecords(poll, 20_000)
		cancel()
		var full []*feed
		var lost []outOfRange
		p.mu.Lock()
		fetches.EachTopic(func(topic kgo.FetchTopic) {
			topic.EachPartition(func(t kgo.FetchPartition) {
				f := p.byFeed[topicPartition{topic.Topic, t.Partition}]
				if o, ok := isOutOfRange(topic.Topic, t.Partition, t.Err); ok && f != nil {
					o.tier = f
					lost = append(lost, o)
				} else if t.Err != nil && !errors.Is(t.Err, context.Canceled) {
					p.c.fetchError(ctx, f, topic.Topic, t.Partition, t.Err)
				}
				if f != nil && len(t.Records) > 0 && f.offerTier(topic.TopicID, t.Records) {
					full = append(full, f)
				}
			})
		})
		p.c.moveTiers(lost)
		p.inHand = false
		p.idle.Broadcast()
		p.mu.Unlock()
		p.c.retryGate.sync(full...)
	}
}

// change runs do while the loop has nothing in hand. It interrupts a poll that waits.
func (p *retryPoll) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	for p.inHand && !p.done {
		p.cancel()
		p.idle.Wait()
	}
	do()
	p.waiting--
	p.idle.Broadcast()
}

// add makes the client read the tiers of lanes.
func (p *retryPoll) add(lanes []*lane) {
	start := map[string]map[int32]kgo.Offset{}
	p.change(func() {
		for _, l := range lanes {
			for _, f := range l.tiers() {
				at := topicPartition{f.topic, l.partition}
				if l.isGone() || p.byFeed[at] == f || f.retired.Load() {
					continue
				}
				p.byFeed[at] = f
				if p.clearing[f.topic] > 0 {
					continue
				}
				if start[f.topic] == nil {
					start[f.topic] = map[int32]kgo.Offset{}
				}
				// With the epoch kgo asks whether the log still is the one that the offset was committed in.
				start[f.topic][l.partition] = kgo.NewOffset().At(f.tracker.next).WithEpoch(f.epoch)
			}
		}
		if len(start) > 0 {
			p.client.AddConsumePartitions(start)
		}
	})
}

// remove makes the client read the tiers of lanes no more.
func (p *retryPoll) remove(lanes []*lane) {
	stop := map[string][]int32{}
	p.change(func() {
		for _, l := range lanes {
			for _, f := range l.tiers() {
				at := topicPartition{f.topic, l.partition}
				if p.byFeed[at] == f {
					delete(p.byFeed, at)
					stop[f.topic] = append(stop[f.topic], l.partition)
				}
			}
		}
		if len(stop) > 0 {
			p.client.RemoveConsumePartitions(stop)
		}
	})
}

// fetchError says what a poll met with, of a feed if it is about one. kgo repeats what is worth repeating by itself.
func (c *Consumer) fetchError(ctx context.Context, f *feed, topic string, partition int32, err error) {
	if ctx.Err() != nil || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, context.Canceled) {
		return
	}
	var session *kgo.ErrGroupSession
	if errors.As(err, &session) {
		c.log.Warn("siding: the group session ended, joining again", "error", session.Err)
		c.membership.trouble(session.Err)
		if refusesUs(session.Err) && c.membership.refused() {
			c.refuse(&refusedError{session.Err})
		}
		return
	}
	if f != nil {
		f.cannotRead(err)
	}
	c.topics.refused(topic, err)
	c.quiet.say(topic+err.Error(), time.Minute, func() {
		c.log.Error("siding: fetch", "topic", topic, "partition", partition, "error", err)
	})
}
