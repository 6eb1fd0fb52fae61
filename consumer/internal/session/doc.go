// Package session knows whether the member is in its group, and which partitions the group gave it.
//
// [Membership] is the lock under which offsets are committed: it promises that no commit is sent
// while the member joins, and that a lost membership ends the commit that is under way.
// [Subscription] promises that a source that was recreated is subscribed to again only when nothing
// of the old topic is in flight any more. The package knows nothing of lanes and records.
package session
