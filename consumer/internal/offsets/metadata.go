package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/sidingkafka/siding/internal/commitmark"
)

// Metadata is what a commit says beside its offset, the floor. Kafka keeps it as a text with the
// offset, and gives it to the partition's next owner.
//
// The text has the mark of siding's commits, the version of the format, and fields that each begin
// with a letter, separated by spaces. Offsets in it count from the floor:
//
//	siding 1 b=AQ
//
// b and r are the records above the floor that are finished, as a bitmap or as run lengths,
// whichever holds more: base64 without padding. Bit i of the bitmap is the offset floor + i, the
// lowest bit of a byte first. Run lengths are unsigned varints: offsets that are not finished, then
// offsets that are, and so on. A reader ignores fields that it does not know, and the whole text if
// it does not know the version.
type Metadata struct {
	// Finished are spans above the floor in which all records are finished. They ascend, and do not
	// touch.
	Finished []Span
}

// Span is a range of offsets, both ends included.
type Span struct{ First, Last int64 }

const metadataVersion = "1"

// MetadataLimit is the number of characters that brokers accept by default
// (offset.metadata.max.bytes).
const MetadataLimit = 4096

// Encode returns the metadata as a text of at most limit characters. Of the finished records, those
// farthest from the floor are left out if they do not fit. The mark is never left out.
func (m *Metadata) Encode(floor int64, limit int) string {
	head := commitmark.Mark + " " + metadataVersion
	room := limit - len(head) - len(" b=")
	if len(m.Finished) == 0 || room < 2 {
		return commitmark.Mark
	}
	bytes := base64.RawStdEncoding.DecodedLen(room)
	field, body := " b=", bitmap(floor, m.Finished, bytes)
	runs, whole := runLengths(floor, m.Finished, bytes)
	if whole && len(runs) < len(body) || covers(floor, runs) > len(body)*8 {
		field, body = " r=", runs
	}
	if len(body) == 0 {
		return commitmark.Mark
	}
	return head + field + base64.RawStdEncoding.EncodeToString(body)
}

// bitmap has a bit for each offset from the floor on, in at most size bytes.
func bitmap(floor int64, finished []Span, size int) []byte {
	last := min(finished[len(finished)-1].Last-floor, int64(size)*8-1)
	bits := make([]byte, last/8+1)
	for _, s := range finished {
		for at := s.First - floor; at <= min(s.Last-floor, last); at++ {
			bits[at/8] |= 1 << (at % 8)
		}
	}
	for len(bits) > 0 && bits[len(bits)-1] == 0 {
		bits = bits[:len(bits)-1]
	}
	return bits
}

// runLengths has the lengths of gaps and spans in turn, in at most size bytes. whole reports
// whether all spans fit.
func runLengths(floor int64, finished []Span, size int) (runs []byte, whole bool) {
	at := floor
	for _, s := range finished {
		n := len(runs)
		runs = binary.AppendUvarint(runs, uint64(s.First-at))
		runs = binary.AppendUvarint(runs, uint64(s.Last-s.First+1))
		if len(runs) > size {
			return runs[:n], false
		}
		at = s.Last + 1
	}
	return runs, true
}

// covers returns how many offsets from the floor on the run lengths speak of.
func covers(floor int64, runs []byte) int {
	spans, _ := parseRunLengths(floor, runs)
	if len(spans) == 0 {
		return 0
	}
	return int(spans[len(spans)-1].Last - floor + 1)
}

// ParseMetadata reads the metadata of an offset that was committed at the floor. ok is false if the
// text is not siding's, is of another version, or is broken: then the partition is read as if the
// commit said nothing.
func ParseMetadata(text string, floor int64) (m Metadata, ok bool) {
	fields := strings.Split(text, " ")
	if fields[0] != commitmark.Mark {
		return Metadata{}, false
	}
	if len(fields) == 1 {
		return Metadata{}, true
	}
	if fields[1] != metadataVersion {
		return Metadata{}, false
	}
	for _, f := range fields[2:] {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "b", "r":
			body, err := base64.RawStdEncoding.DecodeString(value)
			if err != nil || m.Finished != nil {
				return Metadata{}, false
			}
			if name == "b" {
				m.Finished = parseBitmap(floor, body)
			} else if m.Finished, ok = parseRunLengths(floor, body); !ok {
				return Metadata{}, false
			}
		}
	}
	return m, true
}

func parseBitmap(floor int64, bits []byte) (spans []Span) {
	for i := range int64(len(bits)) * 8 {
		if bits[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		if at, n := floor+i, len(spans); n > 0 && spans[n-1].Last == at-1 {
			spans[n-1].Last = at
		} else {
			spans = append(spans, Span{at, at})
		}
	}
	return spans
}

func parseRunLengths(floor int64, runs []byte) (spans []Span, ok bool) {
	at := floor
	for len(runs) > 0 {
		gap, n := binary.Uvarint(runs)
		if n <= 0 {
			return nil, false
		}
		length, k := binary.Uvarint(runs[n:])
		// No offset is beyond 2^62, and two spans do not touch.
		if k <= 0 || gap == 0 && len(spans) > 0 || length == 0 || gap > 1<<62 || length > 1<<62 || at+int64(gap) > 1<<62 || at+int64(gap)+int64(length) > 1<<62 {
			return nil, false
		}
		at += int64(gap)
		spans = append(spans, Span{at, at + int64(length) - 1})
		at += int64(length)
		runs = runs[n+k:]
	}
	return spans, true
}
