// Package topicmonitor watches the topics that a consumer uses: whether they exist, grow, or were
// recreated. A recreated topic has the old name and another id. kgo keeps the id that it saw first,
// and refuses the topic until it is made to forget it, since positions in the old log mean nothing
// in the new one.
//
// The package notices a change within a poll interval, or soon after a client's error about a topic
// or its id, and reports it once. The Owner decides what a change means for lanes and clients.
//
// Only the goroutine of Loop calls the Owner and changes a Topic. The lock guards the suspicions of
// other goroutines and the list of missing topics. No other lock is taken under it.
package topicmonitor
