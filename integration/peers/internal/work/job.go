// Package work is what all programs of the comparison have in common: the job, the records, the
// handler with its bookkeeping, and the measurement.
package work

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// A Job is what one program does in one process.
type Job struct {
	Program    string
	Seeds      []string
	Group      string
	Topic      string
	DLQ        string
	Partitions int
	// Records are numbered from 0 on. OneIn of so many fails each time, with 0 none. It is called
	// again after each of the Waits; without any it is called once.
	Records int
	OneIn   int
	Waits   []time.Duration
	// Nap is the longest time that a handler sleeps.
	Nap time.Duration
	// Record i has key i % Keys, and the order of each key is kept; with 0 each has its own. A
	// program that can do more than a record of each partition at a time has so many Slots.
	Keys  int
	Slots int
	// Rate is at how many records a second they are offered, once the program has handled one
	// record of each partition, numbered from Records on. 0: they are there before.
	Rate int
	// Dir has the embedded broker's log.
	Dir string
}

// Fails reports whether record i fails: one in so many, spread over the partitions and the time,
// the same in each run.
func (j Job) Fails(i int) bool { return j.OneIn > 0 && hash(i)%uint32(j.OneIn) == 0 }

// Failing counts the records that fail.
func (j Job) Failing() (n int) {
	for i := range j.Records {
		if j.Fails(i) {
			n++
		}
	}
	return n
}

// nap is how long the handler of record i sleeps: up to the longest time, evenly spread.
func (j Job) nap(i int) time.Duration { return time.Duration(hash(i)) * j.Nap / (1 << 16) }

// hash is Knuth's multiplicative one: neighbours get values far apart. It has 16 bits, as the low
// bits of the product follow i's too closely.
func hash(i int) uint32 { return uint32(i) * 2654435761 >> 16 }

// ValueSize is the size of each record's value.
const ValueSize = 200

// noise are a value's bytes: the same in every run, not compressible.
var noise = func() (b [ValueSize]byte) {
	rand.NewChaCha8([32]byte{}).Read(b[:]) // never fails
	return b
}()

// Value is that of record i, which is due at a time: the start of its send, by the pace.
func Value(i int, due time.Time) []byte {
	b := noise
	binary.BigEndian.PutUint64(b[:], uint64(i))
	binary.BigEndian.PutUint64(b[8:], uint64(due.UnixNano()))
	return b[:]
}

// Index is the number of the record with the value.
func Index(value []byte) int { return int(binary.BigEndian.Uint64(value)) }

// due is the time that a value carries.
func due(value []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(value[8:])))
}
