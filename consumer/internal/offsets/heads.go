package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// Head is the oldest unfinished record of a key, which waits in its partition for another attempt.
type Head struct {
	Offset   int64
	Attempts int
	Due      int64 // in seconds since 1970
	Failed   int64 // when it failed first, likewise
}

// appendHeads appends a field with the heads of the lowest offsets that fit into limit characters.
func appendHeads(text string, floor int64, heads []Head, limit int) string {
	room := base64.RawStdEncoding.DecodedLen(limit - len(text) - len(headsField))
	if len(heads) == 0 || room <= 0 {
		return text
	}
	first := slices.MinFunc(heads, func(a, b Head) int { return int(a.Due - b.Due) }).Due
	body, at := binary.AppendUvarint(nil, uint64(first)), floor
	for _, h := range heads {
		n := len(body)
		body = binary.AppendUvarint(body, uint64(h.Offset-at))
		body = binary.AppendUvarint(body, uint64(h.Attempts))
		body = binary.AppendUvarint(body, uint64(h.Due-first))
		body = binary.AppendUvarint(body, uint64(max(0, h.Due-h.Failed)))
		if at = h.Offset; len(body) > room {
			body = body[:n]
			break
		}
	}
	if len(body) <= len(binary.AppendUvarint(nil, uint64(first))) {
		return text
	}
	return text + headsField + base64.RawStdEncoding.EncodeToString(body)
}

const (
	headsField = " k="
	// bounds of what is read: no record has more attempts, no time is later
	mostAttempts, mostSeconds = 1_000_000, 1 << 37
)

// parseHeads reads the value of a field. What is broken says nothing.
func parseHeads(floor int64, value string) (heads []Head) {
	body, err := base64.RawStdEncoding.DecodeString(value)
	if err != nil {
		return nil
	}
	ok := true
	next := func(most uint64) int64 {
		v, n := binary.Uvarint(body)
		if n <= 0 || v > most {
			ok = false
			return 0
		}
		body = body[n:]
		return int64(v)
	}
	first, at := next(mostSeconds), floor
	for ok && len(body) > 0 {
		gap := next(1 << 62)
		h := Head{Offset: at + gap, Attempts: int(next(mostAttempts)), Due: first + next(mostSeconds)}
		h.Failed = h.Due - next(mostSeconds)
		if h.Offset > 1<<62 || h.Attempts == 0 || gap == 0 && len(heads) > 0 {
			ok = false
		}
		heads, at = append(heads, h), h.Offset
	}
	if !ok {
		return nil
	}
	return heads
}
