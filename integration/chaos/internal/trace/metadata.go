package trace

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// FinishedAbove returns the offsets above a committed one that the commit's metadata names as
// finished. It reads the format by itself, so that a fault of the consumer's own reader shows.
func FinishedAbove(metadata string, floor int64) (offsets []int64) {
	fields := strings.Split(metadata, " ")
	if len(fields) < 3 || fields[0] != "siding" || fields[1] != "1" {
		return nil
	}
	for _, field := range fields[2:] {
		name, value, _ := strings.Cut(field, "=")
		body, err := base64.RawStdEncoding.DecodeString(value)
		if err != nil {
			continue
		}
		switch name {
		case "b":
			for i := range int64(len(body)) * 8 {
				if body[i/8]>>(i%8)&1 == 1 {
					offsets = append(offsets, floor+i)
				}
			}
		case "r":
			at, finished := floor, false
			for len(body) > 0 {
				length, n := binary.Uvarint(body)
				if n <= 0 {
					break
				}
				for i := int64(0); finished && i < int64(length); i++ {
					offsets = append(offsets, at+i)
				}
				at, finished, body = at+int64(length), !finished, body[n:]
			}
		}
	}
	return offsets
}
