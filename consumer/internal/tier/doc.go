// Package tier holds the records of retry partitions that wait for their time.
//
// A [Tier] keeps the waiting records of one retry partition of a lane. It promises:
//
//   - No record is handed out before it is due. Each that was admitted is handed out, or reported
//     as expired if its log has it no more.
//   - The records that wait in memory, of all tiers of the process, stay within a [Budget]. Beyond
//     it those that are due last are evicted: the tier forgets their bytes, and fetches them again
//     shortly before they are due.
//   - No tier takes another one's room: each has a share of the budget, and room for its next
//     record in any case.
//   - A record that is due after its topic's retention is handed out before, to be written again.
//
// The package knows nothing of handlers, workers, groups, commits and copies. It knows the lane by
// [Lane], and the process by [Env].
//
// # A record's states
//
//	       Admit             Promote            Take            Unpack         Done
//	read ───────▶ parked ───────────▶ ready ──────────▶ taken ─────────▶ run ────────▶ gone
//	  │            │  ▲
//	  │ no room    │  │ fetched again
//	  ▼      evict ▼  │
//	  └─────────▶ evicted ──▶ expired: the log has it no more
//
// A parked record is packed and in the heap, by its due time. An evicted one is a bit in an index.
// A ready one is the lane's: it waits for a worker, or for its key. With [Tier.Take] it leaves the
// tier's books, and with [Tier.Done] the budget's. [Tier.Drop] lets go of all that is parked, ready
// or evicted: the lane was revoked, and its next owner reads the records again.
//
// # Locks
//
// All state of a tier is guarded by the lock of its lane, which [Lane] is. The methods of a Tier
// are called with it held, except those whose comment says that they take it. The tier's own
// goroutines (its timer, the fetch of evicted records) take it too, and hold it over no request and
// no log line.
//
// The mutex of a Budget guards its sums and lists. It lies inside of the lanes' locks: with it held
// no other lock is taken. Budget.rebalance, which looks at all tiers, locks one lane after the
// other, and holds neither two of them nor the budget's mutex over one.
package tier
