package forward

import (
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// staleTopicIDs makes a client write again to recreated topics. kgo keeps the id that it saw first,
// and refuses the topic under another id until it is made to forget the topic.
//
// Forgetting fails everything that the client has for the topic, and records in flight may be
// written twice in the end. So a topic is forgotten once each time that it was recreated. A refusal
// does not count if it comes while kgo forgets the topic, or for a copy that was handed over
// before: it is about the old topic.
type staleTopicIDs struct {
	client     *kgo.Client
	generation atomic.Int32 // counts the topics that were forgotten

	mu       sync.Mutex // not held over a wait for kgo
	stale    map[string]bool
	purging  map[string]bool  // kgo is forgetting it
	purgedAt map[string]int32 // generation after the topic was last forgotten
}

// mark registers that a copy was refused because its topic has another id. generation is the
// client's when the copy was handed over.
func (r *staleTopicIDs) mark(topic string, generation int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.purging[topic] || generation < r.purgedAt[topic] {
		return
	}
	if r.stale == nil {
		r.stale, r.purging, r.purgedAt = map[string]bool{}, map[string]bool{}, map[string]int32{}
	}
	r.stale[topic] = true
}

// purge makes the client forget a recreated topic. It waits for kgo, so kgo's callbacks must not
// call it.
func (r *staleTopicIDs) purge(topic string) {
	r.mu.Lock()
	if !r.stale[topic] {
		r.mu.Unlock()
		return
	}
	delete(r.stale, topic)
	r.purging[topic] = true
	r.mu.Unlock()

	r.client.PurgeTopicsFromProducing(topic)

	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.purging, topic)
	r.purgedAt[topic] = r.generation.Add(1)
}
