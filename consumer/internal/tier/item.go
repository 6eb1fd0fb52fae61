package tier

// Item is a record that is due. It stays packed until [Tier.Unpack]: unpacked it is larger, by its
// headers many times, and what waits is what was admitted by its packed size.
type Item struct {
	packed packedRecord
	size   int64 // that the budget counts
}

// Key returns the record's key. It needs no lock.
func (it *Item) Key() []byte { return it.packed.key() }
