package session

import "sync"

// Subscription tracks the partitions that the group gave to the client, and the recreated sources
// that the client has forgotten. The client subscribes to such a source again only after the group
// revoked all of its partitions and the next session began. By then nothing of the old topic is in
// flight in kgo. Earlier, a late offset of the old topic would become a second position on the same
// partition of the new one. The two would overwrite each other, and the records between them might
// never be read. The methods are safe for concurrent use.
type Subscription struct {
	mu       sync.Mutex
	held     map[string]map[int32]bool
	sessions int             // begun so far
	left     map[string]bool // forgotten sources, to be subscribed to again
}

// NewSubscription makes the subscription of a member without partitions.
func NewSubscription() *Subscription {
	return &Subscription{held: map[string]map[int32]bool{}, left: map[string]bool{}}
}

// Begin registers the partitions that a session begins with. It returns the fresh ones, which the
// member did not have, and the sources to subscribe to again. Partitions may come twice: kgo adds
// those of a source that was subscribed to again once more when it learns their number, though it
// reads them already.
func (s *Subscription) Begin(added map[string][]int32) (fresh map[string][]int32, again []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	fresh = map[string][]int32{}
	for topic, partitions := range added {
		if s.held[topic] == nil {
			s.held[topic] = map[int32]bool{}
		}
		for _, p := range partitions {
			if !s.held[topic][p] {
				s.held[topic][p] = true
				fresh[topic] = append(fresh[topic], p)
			}
		}
	}
	for topic := range s.left {
		if len(s.held[topic]) == 0 {
			delete(s.left, topic)
			again = append(again, topic)
		}
	}
	return fresh, again
}

// End registers the partitions that the group revoked.
func (s *Subscription) End(lost map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, partitions := range lost {
		for _, p := range partitions {
			delete(s.held[topic], p)
		}
	}
}

// Leave runs forget, which makes the client forget a source and the group revoke its partitions. It
// reports whether to subscribe to the source again at once, because no partition was held.
// Otherwise a later Begin returns the source.
func (s *Subscription) Leave(source string, forget func()) (now bool) {
	s.mu.Lock()
	held, sessions := len(s.held[source]) > 0, s.sessions
	s.mu.Unlock()
	forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	// In the second case the session whose Begin would return the source began meanwhile.
	if !held || len(s.held[source]) == 0 && s.sessions > sessions {
		delete(s.left, source)
		return true
	}
	s.left[source] = true
	return false
}
