package forward

import (
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// staleTopicIDs has a client write again to topics that were recreated: kgo keeps the id that it
// saw first, and refuses the topic under another id until it is told to forget the topic.
//
// Forgetting fails everything that the client has for the topic, and what of that is in flight may
// be written twice in the end. So a topic is forgotten once for each time that it was recreated,
// when everything that kgo had for it has failed. A refusal while kgo forgets, or of a copy that
// was handed over before, says nothing of the topic as it is now.
type staleTopicIDs struct {
	client     *kgo.Client
	generation atomic.Int32 // grows with each topic that was forgotten

	mu       sync.Mutex // not held over a wait for kgo
	stale    map[string]bool
	purging  map[string]bool  // kgo is forgetting it
	purgedAt map[string]int32 // generation after the last time
}

// mark notes that a copy, handed over in a generation of the client, was refused because its topic
// has another id.
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

// purge has the client forget a topic that was recreated. It waits for kgo, so it is not for kgo's
// callbacks.
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
