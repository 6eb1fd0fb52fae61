package tail

import "encoding/binary"

// batch is the head of a batch of records (KIP-98), which is read without its records.
type batch struct {
	last     int64 // offset
	size     int   // in bytes, with its header
	producer int64 // -1 where it was written without one
	epoch    int16
	control  bool // it marks the end of a transaction
}

// batchHeader is how many bytes come before the records.
const batchHeader = 61

// parseBatch reads the head of the first batch. known is false for a format before Kafka 0.11; ok
// is false if the batch is cut off.
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
