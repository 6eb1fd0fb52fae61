package tier

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
)

// packedRecord is a parked record in one piece of memory without pointers: a third of what the
// record and its headers take. A fetched record cannot be kept as it is, since it would keep its
// whole fetch in memory.
type packedRecord struct {
	due    int64 // Unix milliseconds
	offset int64
	data   []byte
	ctx    context.Context // of the record, which the user's hooks may have set
}

// size returns the packed record's bytes in the budget.
func (p *packedRecord) size() int64 { return packedSize(cap(p.data)) }

// packedSize returns the memory of a packed record with data bytes of data (see packedLen). It
// includes the record's place in the heap, and the rounding of the allocator.
func packedSize(data int) int64 { return int64(data + data/16 + 80) }

// pack copies a record into one piece of memory.
func pack(r *kgo.Record, due int64) packedRecord {
	b := make([]byte, 0, packedLen(r))
	b = binary.AppendVarint(b, r.Timestamp.UnixMilli())
	b = binary.AppendVarint(b, int64(r.LeaderEpoch))
	b = appendBytes(b, r.Key)
	b = appendBytes(b, r.Value)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for i := range r.Headers {
		// A reserved key is written as a number, without its text.
		h := &r.Headers[i]
		code := reserved.Of(h.Key)
		b = append(b, byte(code))
		if code == reserved.User {
			b = binary.AppendUvarint(b, uint64(len(h.Key)))
			b = append(b, h.Key...)
		}
		b = appendBytes(b, h.Value)
	}
	return packedRecord{due: due, offset: r.Offset, data: b, ctx: r.Context}
}

// packedLen returns an upper bound of the length of the packed data, and a close one.
func packedLen(r *kgo.Record) int {
	const number = 3 // bytes of a length, nearly always
	n := 6 + 2 + number + len(r.Key) + number + len(r.Value) + number
	for i := range r.Headers {
		n += 1 + number + len(r.Headers[i].Value)
		if reserved.Of(r.Headers[i].Key) == reserved.User {
			n += number + len(r.Headers[i].Key)
		}
	}
	return n
}

// unpack returns the record as it was read. The result shares the packed record's memory.
func (p *packedRecord) unpack(topic string, partition int32) *kgo.Record {
	u := unpacker(p.data)
	r := &kgo.Record{
		Timestamp: time.UnixMilli(u.varint()), LeaderEpoch: int32(u.varint()), Key: u.bytes(), Value: u.bytes(),
		Topic: topic, Partition: partition, Offset: p.offset, Context: p.ctx,
	}
	if n := u.uvarint(); n > 0 {
		r.Headers = make([]kgo.RecordHeader, n)
	}
	for i := range r.Headers {
		key := reserved.Key(u.next(1)[0]).String()
		if key == "" {
			key = string(u.next(u.uvarint()))
		}
		r.Headers[i] = kgo.RecordHeader{Key: key, Value: u.bytes()}
	}
	return r
}

// unpackedSize returns the memory that an unpacked record takes beside the packed one, which holds
// its key and values. It counts the record itself, its headers, and a copy of each header key that
// is not reserved.
func unpackedSize(r *kgo.Record) int64 {
	n := 192 + 40*len(r.Headers)
	for i := range r.Headers {
		if key := r.Headers[i].Key; reserved.Of(key) == reserved.User {
			n += len(key) + len(key)/16 + 8
		}
	}
	return int64(n)
}

// key returns the record's key.
func (p *packedRecord) key() []byte {
	u := unpacker(p.data)
	u.varint()
	u.varint()
	return u.bytes()
}

// isFresh reports whether the record was redriven and not delivered since: its number of attempts
// is zero.
func (p *packedRecord) isFresh() bool {
	u := unpacker(p.data)
	u.varint()
	u.varint()
	u.bytes()
	u.bytes()
	for range u.uvarint() {
		key := reserved.Key(u.next(1)[0])
		if key == reserved.User {
			u.next(u.uvarint())
		}
		if value := u.bytes(); key == reserved.Attempts {
			return string(value) == "0"
		}
	}
	return false
}

// appendBytes appends the length of b, then b. nil and empty stay distinct.
func appendBytes(to, b []byte) []byte {
	if b == nil {
		return append(to, 0)
	}
	return append(binary.AppendUvarint(to, uint64(len(b))+1), b...)
}

// unpacker reads what pack wrote.
type unpacker []byte

func (u *unpacker) varint() int64 {
	v, n := binary.Varint(*u)
	*u = (*u)[n:]
	return v
}

func (u *unpacker) uvarint() int {
	v, n := binary.Uvarint(*u)
	*u = (*u)[n:]
	return int(v)
}

func (u *unpacker) next(n int) []byte {
	b := (*u)[:n:n]
	*u = (*u)[n:]
	return b
}

func (u *unpacker) bytes() []byte {
	n := u.uvarint()
	if n == 0 {
		return nil
	}
	return u.next(n - 1)
}

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

// dueHeap is a heap of a tier's parked records, by due time, then by offset.
type dueHeap []packedRecord

func (h dueHeap) less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].offset < h[j].offset
}

// sort sorts the heap. A sorted slice is a heap too.
func (h dueHeap) sort() {
	slices.SortFunc(h, func(a, b packedRecord) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.offset, b.offset))
	})
}

func (h *dueHeap) push(p packedRecord) {
	*h = append(*h, p)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.less(i, up) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *dueHeap) pop() packedRecord {
	s := *h
	top, n := s[0], len(s)-1
	s[0], s[n] = s[n], packedRecord{}
	s = s[:n]
	*h = s
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < n && s.less(down, least) {
				least = down
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
