package tail

import "encoding/binary"

// batch is the header of a record batch (KIP-98).
type batch struct {
	last     int64 // last offset
	size     int   // bytes, with the header
	producer int64 // -1 without a producer id
	epoch    int16
	control  bool // a marker that ends a transaction
}

// batchHeader is the size of the header in bytes.
const batchHeader = 61

// parseBatch parses the header of the first batch. known is false for a format before Kafka 0.11,
// and ok is false if the batch is cut off.
func parseBatch(b []byte) (head batch, known, ok bool) {
	if len(b) < 17 {
		return batch{}, true, false
	}
	head.size = int(int32(binary.BigEndian.Uint32(b[8:]))) + 12
	if magic := b[16]; magic != 2 {
		return batch{}, false, true
	}
	if head.size < batchHeader || head.size > len(b) {
		return batch{}, true, false
	}
	head.control = binary.BigEndian.Uint16(b[21:])&0x20 != 0
	head.last = int64(binary.BigEndian.Uint64(b)) + int64(int32(binary.BigEndian.Uint32(b[23:])))
	head.producer = int64(binary.BigEndian.Uint64(b[43:]))
	head.epoch = int16(binary.BigEndian.Uint16(b[51:]))
	return head, true, true
}
