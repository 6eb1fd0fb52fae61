package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pollGuard is the turn of a poll loop. The loop has the turn from before a poll until everything polled
// is dispatched; a change of the lanes that records are dispatched to has it for itself. So no record
// that was polled before a change is dispatched after it. DESIGN.md, "Intake", says what would be lost.
//
// The turn is not a mutex: a goroutine that has it may wait for time to pass, which in virtual time it could not do while
// others wait for a mutex.
type pollGuard struct {
	mu      sync.Mutex
	free    *sync.Cond // signalled when the turn is given back
	taken   bool
	waiting int    // changes, which go before the next poll
	cancel  func() // interrupts the poll that was begun last
}

func newPollGuard() *pollGuard {
	p := &pollGuard{cancel: func() {}}
	p.free = sync.NewCond(&p.mu)
	return p
}

// begin takes the turn for a poll. The context that it returns ends when a change waits.
func (p *pollGuard) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.taken || p.waiting > 0 {
		p.free.Wait()
	}
	p.taken = true
	poll, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	return poll, cancel
}

// end gives the turn back.
func (p *pollGuard) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = false
	p.free.Broadcast()
}

// betweenPolls runs do in a turn of its own. It interrupts a poll that waits for records.
func (p *pollGuard) betweenPolls(do func()) {
	p.mu.Lock()
	p.waiting++
	for p.taken {
		p.cancel()
		p.free.Wait()
	}
	p.waiting--
	p.taken = true
	p.mu.Unlock()
	defer p.end()
	do()
}

// pollSource moves source records from the group client to their lanes. It never waits for a lane: one that is full has
// its fetch paused. Rebalances go on meanwhile.
func (c *Consumer) pollSource(ctx context.Context) {
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
		c.sourcePauser.apply(full...)
		c.moveSources(lost)
		c.source.end()
	}
}

// betweenPolls has do run in a turn of the source's poll loop. It does not wait, and does nothing any more when the consumer stops.
func (c *Consumer) betweenPolls(do func()) {
	c.wg.Go(func() {
		c.source.betweenPolls(func() {
			if c.stop.Err() == nil {
				do()
			}
		})
	})
}

// retryPoll moves records from the retry client to their lanes, and changes which partitions that client reads.
type retryPoll struct {
	*pollGuard
	c      *Consumer
	client *kgo.Client

	// Of who has the turn:
	byFeed   map[topicPartition]*feed
	clearing map[string]int // topics that the client is about to forget, see reread
}

func newRetryPoll(c *Consumer, client *kgo.Client) *retryPoll {
	return &retryPoll{pollGuard: newPollGuard(), c: c, client: client, byFeed: map[topicPartition]*feed{}, clearing: map[string]int{}}
}

func (p *retryPoll) loop(ctx context.Context) {
	for ctx.Err() == nil {
		poll, cancel := p.begin(ctx)
		fetches := p.client.PollRecords(poll, 20_000)
		cancel()
		var full []*feed
		var lost []outOfRange
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
		p.end()
		p.c.retryPauser.apply(full...)
	}
}

// add makes the client read the tiers of lanes.
func (p *retryPoll) add(lanes []*lane) {
	start := map[string]map[int32]kgo.Offset{}
	stop := map[string][]int32{}
	p.betweenPolls(func() {
		for _, l := range lanes {
			for _, f := range l.tiers() {
				at := topicPartition{f.topic, l.partition}
				if l.isGone() || p.byFeed[at] == f || f.retired.Load() {
					continue
				}
				if p.byFeed[at] != nil { // the remove of the lane before comes later, and finds that it is done
					stop[f.topic] = append(stop[f.topic], l.partition)
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
		if len(stop) > 0 { // kgo passes over the start of a partition that it reads already
			p.client.RemoveConsumePartitions(stop)
		}
		if len(start) > 0 {
			p.client.AddConsumePartitions(start)
		}
	})
}

// remove makes the client read the tiers of lanes no more.
func (p *retryPoll) remove(lanes []*lane) {
	stop := map[string][]int32{}
	p.betweenPolls(func() {
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
		c.membership.noteJoinError(session.Err)
		if refusesUs(session.Err) && c.membership.refused() {
			c.refuse(&refusedError{session.Err})
		}
		return
	}
	if f != nil {
		f.readTrouble(err)
	}
	c.topics.refused(topic, err)
	c.throttle.once(topic+err.Error(), time.Minute, func() {
		c.log.Error("siding: fetch", "topic", topic, "partition", partition, "error", err)
	})
}
