package dlq

import (
	"cmp"
	"strings"
	"time"
)

// Bounds of a summary.
const (
	maxFailures = 1_000 // pairs of class and fingerprint
	maxFolded   = 100   // classes whose other fingerprints are told apart from those of others
	maxSample   = 256   // bytes of a sample message
)

// Summary is what a dead-letter topic holds.
type Summary struct {
	// Topic is the dead-letter topic.
	Topic string
	// Open letters are those that nothing became of yet, Resolved ones those that
	// the ledger settles, and Duplicates copies of letters before them about which
	// the ledger says nothing. Only letters that the filter selects are counted.
	Open, Resolved, Duplicates int64
	// Foreign are open letters that siding did not write, as they have no reason,
	// and Malformed those with headers of siding that a summary needs and that are
	// broken.
	Foreign, Malformed int64
	// Failures count the open letters by class and fingerprint, most first. The
	// same letters give the same failures, whatever order they are read in. There
	// are 1,000 at most: those that sort first by fingerprint, and then by class.
	// Letters of others are folded into one failure of their class without a
	// fingerprint, for 100 classes at most: those that sort first; and the rest of
	// all into one without either. These have Folded set.
	Failures []Failure
	// Groups count the open letters by the consumer group that failed, most first.
	// There are 1,000 at most, those that sort first, and one without a name that
	// is Folded for the rest. Without a name and not folded are letters that name
	// no group.
	Groups []GroupCount
	// Partitions has every partition that was read, in their order.
	Partitions []PartitionCount
}

// Failure is a kind of failure: open letters of the same class and fingerprint,
// both empty for letters that have none.
type Failure struct {
	Class, Fingerprint string
	// Folded says that it stands for what has no row of its own.
	Folded bool
	// Count is how many open letters there are, First and Last when the first and
	// the last of them failed.
	Count       int64
	First, Last time.Time
	// Sample is the message of the one that failed first, valid UTF-8 of at most
	// 256 bytes, and Partition and Offset are where it stands.
	Sample    string
	Partition int32
	Offset    int64
}

// GroupCount is how many open letters a consumer group has.
type GroupCount struct {
	Group  string
	Folded bool
	Open   int64
}

// PartitionCount is what one partition of a dead-letter topic holds.
type PartitionCount struct {
	Partition                  int32
	Open, Resolved, Duplicates int64
	// OldestOffset is the first open letter, and Oldest when it was written, which
	// is what retention goes by. They mean nothing where none is open.
	OldestOffset int64
	Oldest       time.Time
}

// Oldest is the partition with the open letter that was written first; ok is false
// where none is open.
func (s *Summary) Oldest() (oldest PartitionCount, ok bool) {
	for _, p := range s.Partitions {
		if p.Open > 0 && (!ok || p.Oldest.Before(oldest.Oldest)) {
			oldest, ok = p, true
		}
	}
	return oldest, ok
}

// add counts a letter.
func (f *Failure) add(message []byte, at time.Time, partition int32, offset int64) {
	if f.Count++; f.Count == 1 || at.After(f.Last) {
		f.Last = at
	}
	if f.Count == 1 || f.after(at, partition, offset) {
		f.First, f.Partition, f.Offset = at, partition, offset
		f.Sample = strings.ToValidUTF8(string(message[:min(len(message), maxSample)]), "")
	}
}

// after reports whether the first letter is behind another one: by time, then by place, so that it
// does not matter which is seen first.
func (f *Failure) after(at time.Time, partition int32, offset int64) bool {
	return cmp.Or(at.Compare(f.First), cmp.Compare(partition, f.Partition), cmp.Compare(offset, f.Offset)) < 0
}

// merge adds what another row counted.
func (f *Failure) merge(other *Failure) {
	if f.Count == 0 || f.after(other.First, other.Partition, other.Offset) {
		f.First, f.Partition, f.Offset, f.Sample = other.First, other.Partition, other.Offset, other.Sample
	}
	if f.Count == 0 || other.Last.After(f.Last) {
		f.Last = other.Last
	}
	f.Count += other.Count
}
