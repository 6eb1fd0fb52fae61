// Package tier holds the records of retry partitions until they are due.
//
// A [Tier] keeps the waiting records of one retry partition of a lane. It promises:
//
//   - No record is handed out before it is due. Each admitted record is handed out, or reported as
//     expired if retention deleted it.
//   - The waiting records of all tiers of the process stay within a [Budget]. Beyond it the records
//     that are due last are evicted: the tier drops their bytes, and fetches them again shortly
//     before they are due.
//   - No tier takes another one's room: each has a share of the budget, and always has room for its
//     next record.
//   - A record that is due after its topic's retention is handed out before that, to be written
//     again.
//
// The package calls the lane through [Lane], and the process through [Env].
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
// A parked record is packed, in a heap by due time. An evicted record is a bit in an index. A ready
// record is the lane's: it waits for a worker, or for its key. With [Tier.Take] it leaves the
// tier's books, and with [Tier.Done] the budget's. [Tier.Drop] drops all parked, ready and evicted
// records: the lane was revoked, and its next owner reads them again.
//
// # Locks
//
// The lock of its lane ([Lane]) guards all state of a tier. The caller holds it for the methods of
// a Tier, except where their comments say otherwise. The tier's own goroutines (its timer, the
// fetch of evicted records) take it too, but never hold it over a request or a log line.
//
// The mutex of a Budget guards its sums and lists. It is taken inside a lane's lock, and no other
// lock is taken under it. Budget.rebalance visits all tiers: it locks one lane after another, never
// two at once, and none under the budget's mutex.
package tier
