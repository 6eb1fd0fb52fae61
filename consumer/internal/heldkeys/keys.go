// Package heldkeys says which keys of a partition are held: the oldest unfinished record of such a
// key, its head, has failed and waits in the partition for another attempt. Later records of the
// key, its followers, wait behind it.
//
// [Keys] is a state machine without a clock and a lock. A key is
//
//	free ─ its record fails ─▶ waiting ─ due ─▶ ready, running ─ is finished ─▶ free
//	                              ▲                 │
//	                              └── fails again ──┘
//
// See DESIGN.md, "Held keys".
package heldkeys

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// MostHeads bounds the heads of a partition, so that a commit has room for all.
const MostHeads = 128

// Key stands for a key.
type Key uint64

// head is the record in front of a held key.
type head[R any] struct {
	record    R
	key       Key
	at        offsets.Head
	due       time.Time
	waiting   bool // it is not due yet
	followers int
}

// Keys are the held keys of a partition. R is what the caller keeps of a head.
type Keys[R any] struct {
	most    int // Config.MaxHeld
	heads   map[Key]*head[R]
	held    int  // heads and followers
	crowded bool // the text of the last commit had little room left
	// The heads of an earlier owner that were not reached yet, and the leader epoch up to which it
	// had read.
	left  []offsets.Head
	epoch int32
	// the changes of what a commit says, and those that an accepted one has said
	changed, said uint64
}

// New returns keys of which none is held, and that are full with so many held records.
func New[R any](most int) *Keys[R] {
	return &Keys[R]{most: most, heads: map[Key]*head[R]{}}
}

// Wait says how a head waits.
type Wait struct {
	Attempts    int // that it had
	Failed, Due time.Time
}

// Hold holds a key, since its record has failed: that waits for another attempt. It has so many
// followers.
func (k *Keys[R]) Hold(key Key, r R, offset int64, w Wait, followers int) {
	if was := k.heads[key]; was != nil {
		k.held -= 1 + was.followers
	}
	at := offsets.Head{Offset: offset, Attempts: w.Attempts, Due: w.Due.Add(time.Second - 1).Unix(), Failed: w.Failed.Unix()}
	k.heads[key] = &head[R]{record: r, key: key, at: at, due: w.Due, waiting: true, followers: followers}
	k.held += 1 + followers
	k.changed++
}

// Has reports whether a key is held.
func (k *Keys[R]) Has(key Key) bool { return k.heads[key] != nil }

// Head returns the head of a key, the zero value if the key is not held.
func (k *Keys[R]) Head(key Key) (r R) {
	if h := k.heads[key]; h != nil {
		return h.record
	}
	return r
}

// Follow registers that another record of a key was read. It reports whether the key is held.
func (k *Keys[R]) Follow(key Key) bool {
	h := k.heads[key]
	if h == nil {
		return false
	}
	h.followers++
	k.held++
	return true
}

// Due returns the heads that have become due, the earliest first. They are ready from now on.
func (k *Keys[R]) Due(now time.Time) (all []R) {
	var due []*head[R]
	for _, h := range k.heads {
		if h.waiting && !now.Before(h.due) {
			h.waiting = false
			due = append(due, h)
		}
	}
	slices.SortFunc(due, func(a, b *head[R]) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.at.Offset, b.at.Offset))
	})
	for _, h := range due {
		all = append(all, h.record)
	}
	return all
}

// Next returns when the next head is due; ok is false if none waits.
func (k *Keys[R]) Next() (at time.Time, ok bool) {
	for _, h := range k.heads {
		if h.waiting && (!ok || h.due.Before(at)) {
			at, ok = h.due, true
		}
	}
	return at, ok
}

// End registers that the head of a key is finished. Its followers are free. It reports whether the
// key was held.
func (k *Keys[R]) End(key Key) bool {
	h := k.heads[key]
	if h == nil {
		return false
	}
	delete(k.heads, key)
	k.held -= 1 + h.followers
	k.changed++
	return true
}

// Len returns how many keys are held.
func (k *Keys[R]) Len() int { return len(k.heads) }

// Held returns how many records are held: heads and followers.
func (k *Keys[R]) Held() int { return k.held }

// SetCrowded registers whether the text of the last commit had little room left. It reports whether
// that is another answer.
func (k *Keys[R]) SetCrowded(is bool) (changed bool) {
	changed, k.crowded = k.crowded != is, is
	return changed
}

// Full says which bound is reached: no record may start any more but heads and followers. It is
// empty if none is.
func (k *Keys[R]) Full() string {
	switch {
	case len(k.heads) >= MostHeads:
		return "as many keys as a commit has room for"
	case k.held >= k.most:
		return "MaxHeld records"
	case k.crowded && len(k.heads) > 0:
		return "as many gaps as a commit has room for"
	}
	return ""
}

// Eases reports whether every bound is far enough for the partition to be read again.
func (k *Keys[R]) Eases() bool {
	return len(k.heads) <= MostHeads*7/8 && k.held <= k.most*7/8 && k.Full() == ""
}

// Commit returns what the next commit says of heads, those of an earlier owner included. finished
// says of an offset that its record is finished.
func (k *Keys[R]) Commit(finished func(int64) bool) (all []offsets.Head) {
	k.left = slices.DeleteFunc(k.left, func(h offsets.Head) bool { return finished(h.Offset) })
	all = slices.Clone(k.left)
	for _, h := range k.heads {
		if !finished(h.at.Offset) {
			all = append(all, h.at)
		}
	}
	slices.SortFunc(all, func(a, b offsets.Head) int { return cmp.Compare(a.Offset, b.Offset) })
	return all
}

// Changes counts the changes of what Commit says.
func (k *Keys[R]) Changes() uint64 { return k.changed }

// Accepted registers that a commit has said all until a number of changes.
func (k *Keys[R]) Accepted(changes uint64) { k.said = changes }

// Unsaid reports whether no accepted commit has said the last change.
func (k *Keys[R]) Unsaid() bool { return k.said != k.changed }

// Restore registers the heads of the owner that committed, and the leader epoch up to which it had
// read. Without one there are none: a log that was truncated since may have other records there.
// None is due later than latest: another clock may have been wrong.
func (k *Keys[R]) Restore(heads []offsets.Head, epoch int32, latest time.Time) {
	if epoch < 0 {
		return
	}
	k.left, k.epoch = slices.Clone(heads), epoch
	for i := range k.left {
		k.left[i].Due = min(k.left[i].Due, latest.Unix())
		k.left[i].Failed = min(k.left[i].Failed, k.left[i].Due)
	}
}

// Read registers that a record was read. One of a later leader epoch than the earlier owner had
// read is another one than that had, and so is each one behind it.
func (k *Keys[R]) Read(offset int64, epoch int32) {
	if len(k.left) > 0 && epoch > k.epoch {
		k.left = slices.DeleteFunc(k.left, func(h offsets.Head) bool { return h.Offset >= offset })
	}
}

// Left reports whether heads of an earlier owner may still be reached.
func (k *Keys[R]) Left() bool { return len(k.left) > 0 }

// IsLeft reports whether the record at an offset was a head of an earlier owner.
func (k *Keys[R]) IsLeft(offset int64) bool {
	return slices.ContainsFunc(k.left, func(h offsets.Head) bool { return h.Offset == offset })
}

// Take returns what an earlier owner said of the record at an offset, if that was a head.
func (k *Keys[R]) Take(offset int64) (w Wait, ok bool) {
	i := slices.IndexFunc(k.left, func(h offsets.Head) bool { return h.Offset == offset })
	if i < 0 {
		return Wait{}, false
	}
	h := k.left[i]
	k.left = slices.Delete(k.left, i, i+1)
	return Wait{Attempts: h.Attempts, Failed: time.Unix(h.Failed, 0), Due: time.Unix(h.Due, 0)}, true
}
