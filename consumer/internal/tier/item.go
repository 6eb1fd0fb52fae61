package tier

// Item is a record that is due. It stays packed until [Tier.Unpack], because it was admitted by its
// packed size. Unpacked it is larger: its headers take many times as much.
type Item struct {
	packed packedRecord
	size   int64 // in the budget, in bytes
}

// Key returns the record's key. It needs no lock.
func (it *Item) Key() []byte { return it.packed.key() }
