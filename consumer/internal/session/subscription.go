package session

import "sync"

// Subscription is what the group client reads for the group: which partitions the group gave it,
// and the sources that it was told to forget since they were made anew. It is told of such a source
// again only when the group has taken all of its partitions back and the next session has begun. By
// then what kgo had under way for the old topic is over. Before, an offset of the old topic that
// was fetched late would become a second position on the same partition of the new one, the two
// would overwrite each other, and the records between them might never be read.
type Subscription struct {
	mu       sync.Mutex
	held     map[string]map[int32]bool
	sessions int             // that have begun
	left     map[string]bool // sources that are to be subscribed to again
}

// NewSubscription makes the subscription of a member that was given nothing yet.
func NewSubscription() *Subscription {
	return &Subscription{held: map[string]map[int32]bool{}, left: map[string]bool{}}
}

// Begin notes the partitions that a session begins with. It returns those of them that the member
// did not have: kgo may name one twice, and names those of a source that it was told of again once
// more when it hears how many there are, though it reads them already. And it returns the sources
// to subscribe to again.
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

// End notes the partitions that the group took back.
func (s *Subscription) End(lost map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, partitions := range lost {
		for _, p := range partitions {
			delete(s.held[topic], p)
		}
	}
}

// Leave runs forget, which has the client forget a source, and has the group take its partitions
// back. It reports whether to subscribe to the source again at once, since none was held; else
// begin says when.
func (s *Subscription) Leave(source string, forget func()) (now bool) {
	s.mu.Lock()
	held, sessions := len(s.held[source]) > 0, s.sessions
	s.mu.Unlock()
	forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	// the session that would say so began meanwhile
	if !held || len(s.held[source]) == 0 && s.sessions > sessions {
		delete(s.left, source)
		return true
	}
	s.left[source] = true
	return false
}
