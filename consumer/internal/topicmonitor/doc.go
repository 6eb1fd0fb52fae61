// Package topicmonitor watches the topics that a consumer uses: that they exist, and that they are
// still the ones that it began with. A topic that is deleted and recreated has the old name and
// another id. kgo keeps to the id that it saw first, and refuses the topic until it is told to
// forget it, since positions in the one log mean nothing in the other.
//
// The package promises to notice a change within a poll interval, or soon after a client met with
// another id or with none, and to report it once. It knows nothing of lanes and of clients: the
// Owner decides what a change means for them.
//
// The goroutine of Loop alone calls the Owner and alone changes what is known of a topic. The lock
// guards what other goroutines suspect and ask; it is a leaf.
package topicmonitor
