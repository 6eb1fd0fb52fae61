package brokers

import (
	"encoding/binary"
	"os"
)

// The places of fields in a batch of records, and the length of what stands before its length.
const (
	batchLengthAt = 8
	batchHead     = 12
	// mostLost bounds the bytes that a partition loses.
	mostLost = 16 << 10
)

// cutLog takes the last batches from a partition's file, mostLost bytes at most and no more than a
// half, and returns the first offset that is gone; ok is false if that would be nothing.
func cutLog(file string) (from int64, ok bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false, err
	}
	least := max(len(text)-mostLost, len(text)/2)
	for at := 0; at+batchHead <= len(text); {
		if at >= least {
			return int64(binary.BigEndian.Uint64(text[at:])), true, os.Truncate(file, int64(at))
		}
		at += batchHead + int(binary.BigEndian.Uint32(text[at+batchLengthAt:]))
	}
	return 0, false, nil
}
