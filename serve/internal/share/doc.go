// Package share deals out topics to the processes of one consumer group: each topic has one owner
// among them. When a process leaves, or its session times out, another one owns its topics.
//
// Ownership is for what several processes should not all do, as sending a notification. It fences
// nothing: for up to a session timeout two processes may take themselves for the owner.
package share
