// Package session tracks whether the member is in its group, and which partitions the group gave
// it.
//
// [Membership] is the lock under which offsets are committed. No commit is sent while the member
// joins, and a lost membership ends the commit in flight. [Subscription] subscribes to a recreated
// source again only when nothing of the old topic is in flight any more.
package session
