package consumer

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// packedRecord is a parked record, packed: one piece of memory without pointers, a third of what the record and its headers take. A single
// fetched record, kept as it is, would keep the whole fetch besides.
type packedRecord struct {
	due    int64 // Unix milliseconds
	offset int64
	data   []byte
	ctx    context.Context // of the record, by the hooks of the client's user
}

// size is what the parcel counts in the budget.
func (p *packedRecord) size() int64 { return packedSize(cap(p.data)) }

// packedSize is the memory of a parcel by the room of its data, which is packedLen: its place in the heap besides, and what allocators
// round up.
func packedSize(data int) int64 { return int64(data + data/16 + 80) }

// pack copies a record.
func pack(r *kgo.Record, due int64) packedRecord {
	b := make([]byte, 0, packedLen(r))
	b = binary.AppendVarint(b, r.Timestamp.UnixMilli())
	b = binary.AppendVarint(b, int64(r.LeaderEpoch))
	b = appendBytes(b, r.Key)
	b = appendBytes(b, r.Value)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for i := range r.Headers {
		// A reserved key is its number, and no text.
		h := &r.Headers[i]
		code := headers.Code(h.Key)
		b = append(b, code)
		if code == 0 {
			b = binary.AppendUvarint(b, uint64(len(h.Key)))
			b = append(b, h.Key...)
		}
		b = appendBytes(b, h.Value)
	}
	return packedRecord{due: due, offset: r.Offset, data: b, ctx: r.Context}
}

// packedLen is no less than what a record's parcel holds, and hardly more.
func packedLen(r *kgo.Record) int {
	const number = 3 // bytes of a length, nearly always
	n := 6 + 2 + number + len(r.Key) + number + len(r.Value) + number
	for i := range r.Headers {
		n += 1 + number + len(r.Headers[i].Value)
		if headers.Code(r.Headers[i].Key) == 0 {
			n += number + len(r.Headers[i].Key)
		}
	}
	return n
}

// unpack is the record again, as it was read from the feed. It shares the parcel's memory.
func (p *packedRecord) unpack(f *feed) *kgo.Record {
	u := unpacker(p.data)
	r := &kgo.Record{
		Timestamp: time.UnixMilli(u.varint()), LeaderEpoch: int32(u.varint()), Key: u.bytes(), Value: u.bytes(),
		Topic: f.topic, Partition: f.lane.partition, Offset: p.offset, Context: p.ctx,
	}
	if n := u.uvarint(); n > 0 {
		r.Headers = make([]kgo.RecordHeader, n)
	}
	for i := range r.Headers {
		key := headers.Name(u.next(1)[0])
		if key == "" {
			key = string(u.next(u.uvarint()))
		}
		r.Headers[i] = kgo.RecordHeader{Key: key, Value: u.bytes()}
	}
	return r
}

// unpackedSize is the memory of a record that was unpacked, beside its parcel, which holds its key and values: the record itself, its
// headers, and a copy of each key of theirs that has no number.
func unpackedSize(r *kgo.Record) int64 {
	n := 192 + 40*len(r.Headers)
	for i := range r.Headers {
		if key := r.Headers[i].Key; headers.Code(key) == 0 {
			n += len(key) + len(key)/16 + 8
		}
	}
	return int64(n)
}

// key is the record's key.
func (p *packedRecord) key() []byte {
	u := unpacker(p.data)
	u.varint()
	u.varint()
	return u.bytes()
}

// appendBytes adds bytes behind their length; nil is none, and not the same as empty.
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
