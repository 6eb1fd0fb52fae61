package dlq

// The summary of a topic, and the sum of two.

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
)

// Bounds of a summary.
const (
	maxFailures = 1_000 // pairs of class and fingerprint
	maxFolded   = 100   // classes with a row for their folded fingerprints
	maxSample   = 256   // bytes of a sample message
	maxInRow    = 10    // groups that a failure names
	maxTimes    = 1_000 // times by which letters are counted
)

// Summary counts the letters of a dead-letter topic.
type Summary struct {
	// Topic is the dead-letter topic.
	Topic string
	// Open counts the open letters. Pending counts the letters that were redriven and whose outcome
	// is not known yet; the entry of such a letter is [Redriven]. Resolved counts the other letters
	// that an entry resolves, and Duplicates the copies of earlier letters that have no entry of
	// their own. A letter has one of these counts. All count only letters that the filter selects.
	Open, Pending, Resolved, Duplicates int64
	// ResolvedAs splits Resolved by the states of the letters' entries.
	ResolvedAs map[State]int64
	// Foreign counts the open letters that siding did not write: they have no reason. Malformed
	// counts the open letters with broken headers: see [Letter.Damaged].
	Foreign, Malformed int64
	// Dialects splits Foreign by the names of the letters' dialects, as far as they are known. It
	// is nil if there are none.
	Dialects map[string]int64
	// Failures counts the open letters by class and fingerprint, the most frequent first. It does
	// not depend on the order in which letters are read. It has at most 1,000 pairs, those that
	// sort first by fingerprint, then by class. Other letters are folded into one failure of their
	// class, without a fingerprint. That is for at most 100 classes, those that sort first. All
	// remaining letters are folded into one failure without class and fingerprint. These failures
	// have Folded set.
	Failures []Failure
	// Groups counts the open letters by the consumer group that failed, the most letters first. It
	// has at most 1,000 groups, those that sort first. All others are in one GroupCount with Folded
	// set. Letters without a group are in one with an empty name and without Folded.
	Groups []GroupCount
	// Times counts the open letters by when they failed, the earliest time first, without times in
	// which none failed. Only [Ledger.SummarizeBy] fills it. It has at most 1,000 times, the latest
	// ones. All earlier letters are in one more, the first, with Earlier set.
	Times []TimeCount
	// Values counts the open letters by a value. Only [Ledger.SummarizeBy] fills it.
	Values *TopValues
	// Partitions has every partition that was read, in order.
	Partitions []PartitionCount
}

// Failure counts the open letters of one class and fingerprint. Either is empty for letters that
// have none.
type Failure struct {
	Class, Fingerprint string
	// Folded reports that this failure has the letters of all pairs without a Failure of their own.
	Folded bool
	// Count is the number of open letters. First and Last are when the first and the last of them
	// failed.
	Count       int64
	First, Last time.Time
	// Sample is the message of the letter that failed first: valid UTF-8, at most 256 bytes.
	// Partition and Offset are that letter's.
	Sample    string
	Partition int32
	Offset    int64
	// Frame is where in the code that letter failed, by its stack: see [classify.Place]. Host and
	// Version are those of the consumer that failed it. Each is empty if the letter does not say.
	Frame, Host, Version string
	// Groups are the consumer groups that failed so, sorted: at most 10, those that sort first. A
	// letter without a group adds none.
	Groups []string
}

// TimeCount is the number of open letters that failed within one time.
type TimeCount struct {
	// From is when the time begins: a multiple of its length since 1970, in UTC. With Earlier set
	// it is when the first of all these letters failed.
	From    time.Time
	Earlier bool
	Open    int64
}

// GroupCount is the number of open letters of a consumer group.
type GroupCount struct {
	Group  string
	Folded bool
	Open   int64
}

// PartitionCount counts the letters of one partition of a dead-letter topic.
type PartitionCount struct {
	Partition                           int32
	Open, Pending, Resolved, Duplicates int64
	// OldestOffset is the offset of the first open letter, and Oldest when it was written, which
	// retention goes by. They are zero if no letter is open.
	OldestOffset int64
	Oldest       time.Time
}

// Oldest returns the partition with the open letter that was written first. ok is false if no
// letter is open.
func (s *Summary) Oldest() (oldest PartitionCount, ok bool) {
	for _, p := range s.Partitions {
		if p.Open > 0 && (!ok || p.Oldest.Before(oldest.Oldest)) {
			oldest, ok = p, true
		}
	}
	return oldest, ok
}

// add counts a letter.
func (f *Failure) add(g *headerView, at time.Time, partition int32, offset int64) {
	if f.Count++; f.Count == 1 || at.After(f.Last) {
		f.Last = at
	}
	if f.Count == 1 || f.after(at, partition, offset) {
		f.First, f.Partition, f.Offset = at, partition, offset
		f.Sample, f.Frame = cutText(g.message, maxSample), classify.Place(string(g.stack[:min(len(g.stack), headers.MaxStack)]))
		f.Host, f.Version = cutText(g.host, maxName), cutText(g.version, maxName)
	}
	f.addGroup(g.group)
}

// cutText returns the beginning of a text as valid UTF-8.
func cutText(text []byte, most int) string {
	return strings.ToValidUTF8(string(text[:min(len(text), most)]), "")
}

// after reports whether the first letter comes after another one: by time, then by place. So the
// result does not depend on the order of reading.
func (f *Failure) after(at time.Time, partition int32, offset int64) bool {
	return cmp.Or(at.Compare(f.First), cmp.Compare(partition, f.Partition), cmp.Compare(offset, f.Offset)) < 0
}

// addGroup adds the group of a letter.
func (f *Failure) addGroup(group []byte) {
	for _, known := range f.Groups {
		if string(group) == known {
			return
		}
	}
	if len(group) > 0 && len(group) <= maxName && utf8.Valid(group) {
		f.insertGroup(string(group))
	}
}

// insertGroup keeps the groups that sort first, so that the order of reading does not matter.
func (f *Failure) insertGroup(group string) {
	if i, found := slices.BinarySearch(f.Groups, group); !found && i < maxInRow {
		f.Groups = slices.Insert(f.Groups, i, group)
		f.Groups = f.Groups[:min(len(f.Groups), maxInRow)]
	}
}

// merge adds the counts of another row.
func (f *Failure) merge(other *Failure) {
	for _, group := range other.Groups {
		f.insertGroup(group)
	}
	if f.Count == 0 || f.after(other.First, other.Partition, other.Offset) {
		f.First, f.Partition, f.Offset, f.Sample = other.First, other.Partition, other.Offset, other.Sample
		f.Frame, f.Host, f.Version = other.Frame, other.Host, other.Version
	}
	if f.Count == 0 || other.Last.After(f.Last) {
		f.Last = other.Last
	}
	f.Count += other.Count
}
