package dlq

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Cursor is a place in a dead-letter topic, and the end of a read. The zero value reads any topic
// from its start to its end.
//
// A Cursor is not safe for concurrent use.
type Cursor struct {
	// Topic is the dead-letter topic. If it is empty, the cursor fits any topic.
	Topic string
	// At has, by partition, the offset of the next letter. A partition that is missing is read from
	// its start.
	At map[int32]int64
	// End has, by partition, the offset after the last letter. If it is not empty, only its
	// partitions are read, up to these offsets; later letters are not part of the read. [Freeze]
	// fills it.
	End map[int32]int64
}

// Advance moves the cursor to the offset after a letter. Letters of a partition come in the order
// of their offsets, so this also passes the letters before it that the filter did not select.
func (c *Cursor) Advance(l *Letter) { c.advance(l.Record) }

func (c *Cursor) advance(r *kgo.Record) {
	if c.At == nil {
		c.At = map[int32]int64{}
	}
	c.At[r.Partition] = max(c.At[r.Partition], r.Offset+1)
}

// Done reports whether the cursor has reached all its ends. A cursor without ends is never done.
// Done can stay false after a complete read, because letters that a filter does not select advance
// no cursor.
func (c Cursor) Done() bool {
	for p, end := range c.End {
		if c.At[p] < end {
			return false
		}
	}
	return len(c.End) > 0
}

const cursorVersion = "v1"

// String returns the cursor's text form, which [ParseCursor] reads:
//
//	v1/orders.dlq/0:17-42,1:0-3
//
// For each partition it has the number, the next offset and the end. Either offset can be missing.
// The text needs no quoting in a shell.
func (c Cursor) String() string {
	partitions := slices.AppendSeq(slices.Collect(maps.Keys(c.At)), maps.Keys(c.End))
	slices.Sort(partitions)
	var b strings.Builder
	b.WriteString(cursorVersion + "/" + c.Topic + "/")
	for i, p := range slices.Compact(partitions) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d:", p)
		if at, ok := c.At[p]; ok {
			fmt.Fprintf(&b, "%d", at)
		}
		b.WriteByte('-')
		if end, ok := c.End[p]; ok {
			fmt.Fprintf(&b, "%d", end)
		}
	}
	return b.String()
}

// ParseCursor parses the text form of a cursor. The error names the part that is wrong.
func ParseCursor(s string) (Cursor, error) {
	c, err := parseCursor(s)
	if err != nil {
		return Cursor{}, fmt.Errorf("dlq: cursor %.100q: %w", s, err)
	}
	return c, nil
}

func parseCursor(s string) (Cursor, error) {
	version, rest, ok := strings.Cut(s, "/")
	if !ok || version != cursorVersion {
		return Cursor{}, fmt.Errorf("it does not start with %q: it was cut, or written by a newer version", cursorVersion+"/")
	}
	topic, list, ok := strings.Cut(rest, "/")
	if !ok {
		return Cursor{}, errors.New("the partitions are missing")
	}
	c := Cursor{Topic: topic}
	if list == "" {
		return c, nil
	}
	for item := range strings.SplitSeq(list, ",") {
		number, span, ok1 := strings.Cut(item, ":")
		at, end, ok2 := strings.Cut(span, "-")
		if !ok1 || !ok2 || at == "" && end == "" {
			return Cursor{}, fmt.Errorf("%q is not partition:next-end", item)
		}
		p, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return Cursor{}, fmt.Errorf("%q is not the number of a partition", number)
		}
		_, named := c.At[int32(p)]
		if _, bounded := c.End[int32(p)]; named || bounded {
			return Cursor{}, fmt.Errorf("partition %d is named twice", p)
		}
		if err := errors.Join(setOffset(&c.At, int32(p), at), setOffset(&c.End, int32(p), end)); err != nil {
			return Cursor{}, err
		}
	}
	return c, nil
}

func setOffset(m *map[int32]int64, p int32, text string) error {
	if text == "" {
		return nil
	}
	offset, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return fmt.Errorf("%q is not an offset", text)
	}
	if *m == nil {
		*m = map[int32]int64{}
	}
	(*m)[p] = int64(offset)
	return nil
}
