package watch

// The facts of each letter that counts need.

import (
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sidingkafka/siding/dlq"
)

// A fate is what a letter counts as.
type fate uint8

const (
	open fate = iota
	pending
	resolved
	failed // again: resolved, and there is another letter of it
	duplicate
)

func fateOf(s dlq.State, copied bool) fate {
	switch {
	case s == dlq.Redriven:
		return pending
	case copied && (s == dlq.Duplicate || s == ""):
		return duplicate
	case s == dlq.Failed:
		return failed
	case s.Resolves():
		return resolved
	}
	return open
}

// row is a letter.
type row struct {
	offset          int64
	failed, entered int64 // Unix milliseconds
	kind            uint32
	fate            fate
	copied          bool // without an entry it is a duplicate
}

// kind is what letters have in common that failed in the same way.
type kind struct{ class, fingerprint, version string }

// mostKinds bounds the kinds. Further letters count by class alone, and beyond twice as many
// without a class.
const mostKinds = 5_000

// sample is the first letter that was read of a kind.
type sample struct {
	kind
	message   string
	partition int32
	offset    int64
}

// letters has the rows of a topic, in the order of each partition. The zero value has none.
type letters struct {
	rows    map[int32][]row
	kinds   []sample
	numbers map[kind]uint32
	redact  func(string) string // of messages
}

// mostMessage bounds the message of a sample, in bytes.
const mostMessage = 256

// add adds a letter, which is the last of its partition. It came between two times.
func (s *letters) add(l *dlq.Letter, copied bool, after, until time.Time) {
	r := l.Record
	entered := r.Timestamp
	if entered.Before(after) {
		entered = after
	}
	if entered.After(until) {
		entered = until
	}
	s.rows[r.Partition] = append(s.rows[r.Partition], row{
		offset: r.Offset, failed: l.FailedAt().UnixMilli(), entered: entered.UnixMilli(), kind: s.number(l), fate: fateOf(l.State, copied), copied: copied,
	})
}

// number returns the number of a letter's kind.
func (s *letters) number(l *dlq.Letter) uint32 {
	k := kind{l.Meta.Class, l.Meta.Fingerprint, l.Meta.Version}
	for _, folded := range []struct {
		kind
		most int
	}{{k, mostKinds}, {kind{class: k.class}, 2 * mostKinds}, {kind{}, 2*mostKinds + 1}} {
		if n, ok := s.numbers[folded.kind]; ok {
			return n
		}
		if k = folded.kind; len(s.kinds) < folded.most {
			break
		}
	}
	message := l.Meta.Message
	if s.redact != nil {
		message = s.redact(message)
	}
	n := uint32(len(s.kinds))
	s.numbers[k] = n
	s.kinds = append(s.kinds, sample{k, begin(message, mostMessage), l.Record.Partition, l.Record.Offset})
	return n
}

// begin returns the beginning of a text, of n bytes at most.
func begin(text string, n int) string {
	if len(text) <= n {
		return strings.Clone(text) // it may be a part of something large
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}

// judge takes over what became of a letter, if it has a row.
func (s *letters) judge(partition int32, offset int64, state dlq.State) {
	rows := s.rows[partition]
	i := sort.Search(len(rows), func(i int) bool { return rows[i].offset >= offset })
	if i < len(rows) && rows[i].offset == offset {
		rows[i].fate = fateOf(state, rows[i].copied)
	}
}

// keep removes the letters outside of offsets.
func (s *letters) keep(partition int32, from, until int64) {
	s.rows[partition] = slices.DeleteFunc(s.rows[partition], func(r row) bool { return r.offset < from || r.offset >= until })
}
