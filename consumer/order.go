package consumer

// Order says which records may run at the same time.
type Order uint8

const (
	// OrderPartition runs one record at a time per physical partition. The source and its tiers are
	// separate, so a slow retry does not hold up the source. The default.
	OrderPartition Order = iota
	// OrderKey runs one record at a time per key in the whole lane, retries included; different
	// keys run in parallel. Records with a null key have no order; an empty key is a key. A parked
	// record does not hold up later records of its key.
	OrderKey
	// OrderNone sets no order; only Config.Concurrency bounds the running records.
	OrderNone
)
