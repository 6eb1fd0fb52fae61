package consumer

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// retryPoll dispatches records from the retry client to their lanes, and changes which partitions
// that client reads.
type retryPoll struct {
	*pollGuard
	c      *Consumer
	client *kgo.Client

	// Owned by the goroutine that has the turn:
	byFeed   map[topicPartition]*tierFeed
	clearing map[string]int // topics that the client is dropping, see reread
}

func newRetryPoll(c *Consumer, client *kgo.Client) *retryPoll {
	return &retryPoll{pollGuard: newPollGuard(), c: c, client: client, byFeed: map[topicPartition]*tierFeed{}, clearing: map[string]int{}}
}

func (p *retryPoll) loop(ctx context.Context) {
	for ctx.Err() == nil {
		poll, cancel := p.begin(ctx)
		fetches := p.client.PollRecords(poll, 20_000)
		cancel()
		var full []*fetch
		var lost []outOfRange
		fetches.EachTopic(func(topic kgo.FetchTopic) {
			topic.EachPartition(func(t kgo.FetchPartition) {
				f := p.byFeed[topicPartition{topic.Topic, t.Partition}]
				var common *feed
				if f != nil {
					common = &f.feed
				}
				if o, ok := isOutOfRange(topic.Topic, t.Partition, t.Err); ok && f != nil {
					o.tier, o.feed = f, common
					lost = append(lost, o)
				} else if t.Err != nil {
					p.c.fetchError(ctx, common, topic.Topic, t.Partition, t.Err)
				}
				if f != nil && len(t.Records) > 0 && f.takePolled(topic.TopicID, t.Records, t.HighWatermark) {
					full = append(full, &f.fetch)
				}
			})
		})
		p.c.move(lost, p.pollGuard)
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
				if l.isGone() || p.byFeed[at] == f || f.parked.Retired() {
					continue
				}
				// The old lane's remove comes later, and does nothing.
				if p.byFeed[at] != nil {
					stop[f.topic] = append(stop[f.topic], l.partition)
				}
				p.byFeed[at] = f
				if p.clearing[f.topic] > 0 {
					continue
				}
				// The epoch makes kgo check that the log is still the one in which the offset was
				// committed.
				put(start, f.topic, l.partition, kgo.NewOffset().At(f.tracker.Next).WithEpoch(f.epoch))
			}
		}
		if len(stop) > 0 { // kgo ignores the start of a partition that it reads already
			p.client.RemoveConsumePartitions(stop)
		}
		if len(start) > 0 {
			p.client.AddConsumePartitions(start)
		}
	})
}

// remove makes the client stop reading the tiers of lanes.
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

// reread makes the retry client drop its state of a topic, and read it again for the current feeds.
// kgo takes time to drop it, and no lock is held meanwhile. The client reads a feed that is added
// meanwhile only after that.
func (p *retryPoll) reread(topic string) {
	p.betweenPolls(func() { p.clearing[topic]++ })
	p.client.PurgeTopicsFromConsuming(topic)
	p.client.ResumeFetchTopics(topic)
	p.betweenPolls(func() {
		if p.clearing[topic]--; p.clearing[topic] > 0 {
			return
		}
		delete(p.clearing, topic)
		start := map[int32]kgo.Offset{}
		for at, f := range p.byFeed {
			if at.topic != topic {
				continue
			}
			if f.parked.Retired() {
				delete(p.byFeed, at)
				continue
			}
			f.lane.mu.Lock()
			start[at.partition] = kgo.NewOffset().At(f.tracker.Next)
			f.lane.mu.Unlock()
		}
		if len(start) > 0 {
			p.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: start})
		}
	})
}
