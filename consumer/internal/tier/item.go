package tier

// Item is a record that is due. It stays packed until [Tier.Unpack], because it was admitted by its
// packed size. Unpacked it is larger: its headers take many times as much.
type Item struct {
	packed packedRecord
	size   int64 // in the budget, in bytes
}

// Fresh reports whether the record was redriven and has not been delivered since, by its headers.
// It needs no lock.
func (it *Item) Fresh() bool { return it.packed.isFresh() }

// Offset returns where the record is in the retry partition. It needs no lock.
func (it *Item) Offset() int64 { return it.packed.offset }

// Key returns the record's key. It needs no lock.
func (it *Item) Key() []byte { return it.packed.key() }
