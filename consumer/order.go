package consumer

import (
	"fmt"
)

// Order says which records may run at the same time.
type Order uint8

const (
	// OrderPartition runs one record at a time per physical partition: the source and each tier by
	// themselves, so that a slow retry does not hold up its source. The default.
	OrderPartition Order = iota
	// OrderKey runs one record at a time per key over the whole lane, retries included, and keys in
	// parallel. Records with a null key are free; an empty key is a key. A record that was parked
	// does not hold up later ones of its key.
	OrderKey
	// OrderNone is bounded by Concurrency alone.
	OrderNone
)

func (o Order) String() string {
	switch o {
	case OrderPartition:
		return "partition"
	case OrderKey:
		return "key"
	case OrderNone:
		return "none"
	}
	return fmt.Sprintf("Order(%d)", uint8(o))
}
