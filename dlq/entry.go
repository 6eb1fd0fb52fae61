package dlq

// An entry of the ledger and its states; entry_scan.go reads its JSON.

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// Entry is a ledger's entry about a dead letter. The last entry about a letter counts. The zero
// value revokes the entry before it: the letter is open again.
type Entry struct {
	// TopicID is the id of the dead-letter topic. An entry about a deleted topic of the same name
	// is ignored. TopicID is zero if the brokers have no ids or the writer did not know it; such an
	// entry counts.
	TopicID [16]byte
	// Epochs is how many leader epochs the letter's partition had had when the letter was there:
	// the last one's number plus one. An entry counts no more once the brokers have lost its
	// letter, as in an unclean election, and another letter may have the offset. Zero if it is
	// unknown; such an entry counts.
	Epochs int32
	// State is one of the constants.
	State State
	// Run is the id of the redrive run that the entry is about, if any.
	Run string
	// At is when the entry was recorded.
	At time.Time
	// Since is when the letter was resolved, if that was before At: an outcome becomes known some
	// time after the redrive. A copy that failed after Since is a letter of its own, see
	// [Ledger.Letters]. Zero means At.
	Since time.Time
	// By is the operator who resolved or reopened the letter, and Why the operator's reason.
	By, Why string
	// Target is the place to which the letter was redriven: topic, partition and offset. Where the
	// copy failed on the way, the outcome has the place of its last copy. In the entry of a
	// [Duplicate] it is the original letter. Then the entry counts only while that letter has an
	// entry that it was redriven or discarded, and its outcome is not unknown. A Duplicate without
	// a target always counts.
	Target headers.Position
	// Class is the class of the error with which the letter failed again.
	Class string
	// Edited names what the redrive changed: "headers", "value" or both.
	Edited []string
}

// behind returns how far after its letter a copy at the given place stands; 0 if the entry does not
// name the letter. ok is false if the named letter cannot be the copy's.
func (e *Entry) behind(topic string, at place) (behind uint32, ok bool) {
	if e.Target.Topic == "" {
		return 0, true
	}
	distance := at.offset - e.Target.Offset
	ok = e.Target.Topic == topic && e.Target.Partition == at.partition && e.Target.Offset >= 0 && distance > 0 && distance <= math.MaxUint32
	return uint32(distance), ok
}

// entryVersion is the newest version that can be read. A new state gets a new version, so that an
// older siding rejects the entry instead of taking its letter for open.
const entryVersion = 3

// Record returns the ledger's record of the entry, about the letter at partition and offset. Its
// key is the offset in decimal, and its partition the letter's. The record of the zero Entry has no
// value.
func (e *Entry) Record(ledger string, partition int32, offset int64) *kgo.Record {
	r := &kgo.Record{Topic: ledger, Partition: partition}
	if e.State == "" {
		r.Key = strconv.AppendInt(nil, offset, 10)
		return r
	}
	// one allocation for key and value, as a rule
	text := strconv.AppendInt(make([]byte, 0, 288), offset, 10)
	r.Key = text[:len(text):len(text)]
	r.Value = e.append(text[len(text):])
	return r
}

// append appends the JSON of the entry. A run writes one entry per letter, so encoding/json would
// be too slow.
func (e *Entry) append(b []byte) []byte {
	b = append(b, `{"v":`...)
	b = append(b, '0'+e.State.version())
	if e.TopicID != ([16]byte{}) {
		b = append(b, `,"topicId":"`...)
		b = base64.RawURLEncoding.AppendEncode(b, e.TopicID[:])
		b = append(b, '"')
	}
	if e.Epochs > 0 {
		b = strconv.AppendInt(appendName(b, "epochs"), int64(e.Epochs), 10)
	}
	b = appendField(b, "state", string(e.State))
	b = appendField(b, "run", e.Run)
	b = appendTime(b, "at", e.At)
	if !e.Since.IsZero() {
		b = appendTime(b, "since", e.Since)
	}
	b = appendField(b, "by", e.By)
	b = appendField(b, "why", e.Why)
	if e.Target.Topic != "" {
		b = appendField(b, "target", e.Target.Topic)
		b = append(b[:len(b)-1], '/') // the position continues inside the quotes
		b = strconv.AppendInt(b, int64(e.Target.Partition), 10)
		b = append(b, '/')
		b = strconv.AppendInt(b, e.Target.Offset, 10)
		b = append(b, '"')
	}
	b = appendField(b, "class", e.Class)
	for i, what := range e.Edited {
		if i == 0 {
			b = append(b, `,"edited":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendText(b, what)
	}
	if len(e.Edited) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendTime(b []byte, name string, at time.Time) []byte {
	b = appendName(b, name)
	b = append(b, '"')
	b = at.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendField appends a field, unless its value is empty.
func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(appendName(b, name), value)
}

func appendName(b []byte, name string) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	return append(b, `":`...)
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	if !plain(s) {
		text, err := json.Marshal(s)
		if err != nil {
			panic(err) // a string always encodes
		}
		return append(b, text...)
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// ErrNewerVersion reports an entry that a newer siding wrote. Its meaning is not known, so leave
// its letter alone.
var ErrNewerVersion = errors.New("a newer siding wrote it: use that version of siding")

// errKey reports a key that no letter can have.
var errKey = errors.New("its key is neither an offset nor a run's")

// errDiscardReport reports a broken discard report.
var errDiscardReport = errors.New("it is not a consumer's discard report")

// errDiscardNote reports a broken note of a discarded record.
var errDiscardNote = errors.New("it is not a note of a discarded record")

// EntryError reports a record of a ledger that is not an entry.
type EntryError struct {
	// At is the position of the record in the ledger's topic.
	At headers.Position
	// Key is the record's key, cut to 64 bytes. It is the offset of a letter, if there is one.
	Key string
	// Err is the fault. It wraps [ErrNewerVersion], or else the record is broken.
	Err error
}

func newEntryError(r *kgo.Record, err error) *EntryError {
	at := headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
	return &EntryError{at, string(r.Key[:min(len(r.Key), 64)]), err}
}

// Error names the position, the key, the fault and the remedy.
func (e *EntryError) Error() string {
	what := "; its letter counts as open until a new entry is written, or a record with that key and without a value"
	switch {
	case errors.Is(e.Err, errDiscardReport), errors.Is(e.Err, errDiscardNote):
		what = "; it is ignored and can stay"
	case errors.Is(e.Err, ErrNewerVersion):
		what = ""
	case errors.Is(e.Err, errKey):
		what = "; it is about no letter and can stay"
	}
	return fmt.Sprintf("dlq: ledger record %v with key %q: %v%s", e.At, e.Key, e.Err, what)
}

// Unwrap returns Err.
func (e *EntryError) Unwrap() error { return e.Err }

// readEntry returns an entry, and the offset of its letter. A record without a value gives the zero
// Entry. Unknown fields are ignored. The error is an *EntryError. With an error, offset is -1 if
// the key is not an offset, and e has at most the topic id.
func readEntry(r *kgo.Record) (offset int64, e Entry, err error) {
	offset, ok := ledgerrecord.ParseOffset(r.Key)
	if !ok {
		err = errKey
	} else if r.Value != nil {
		e, err = parseEntry(r.Value)
	}
	if err != nil {
		return offset, Entry{TopicID: e.TopicID}, newEntryError(r, err)
	}
	return offset, e, nil
}

// parseEntry also returns the topic id of a broken entry, so that the caller can ignore those about
// other topics.
func parseEntry(value []byte) (e Entry, err error) {
	j, err := scanEntry(string(value))
	if j.TopicID != "" {
		id, bad := base64.RawURLEncoding.Strict().DecodeString(j.TopicID)
		if bad != nil || len(id) != len(e.TopicID) {
			err = fmt.Errorf("its topic id is %.40q", j.TopicID)
		} else {
			copy(e.TopicID[:], id)
		}
	}
	switch {
	case j.V > entryVersion:
		return e, fmt.Errorf("it has version %d, and this siding reads version %d: %w", j.V, entryVersion, ErrNewerVersion)
	case err != nil:
		return e, err
	case j.V < 1:
		return e, errors.New("it names no version")
	case !slices.Contains(states[:], j.State):
		return e, fmt.Errorf("its state is %.40q", j.State)
	}
	if j.Epochs < 0 || j.Epochs > math.MaxInt32 {
		return e, fmt.Errorf("it names %d leader epochs", j.Epochs)
	}
	at, ok := parseTime(j.At)
	if !ok {
		return e, fmt.Errorf("its time is %.40q", j.At)
	}
	var since time.Time
	if j.Since != "" {
		if since, ok = parseTime(j.Since); !ok {
			return e, fmt.Errorf("its letter was resolved at %.40q", j.Since)
		}
	}
	if j.Target != "" {
		if e.Target, err = headers.ParsePosition(j.Target); err != nil {
			return e, fmt.Errorf("its target %.80q: %w", j.Target, err)
		}
	}
	e.Epochs, e.State, e.Run, e.At, e.Since = int32(j.Epochs), j.State, j.Run, at, since
	e.By, e.Why, e.Class, e.Edited = j.By, j.Why, j.Class, j.Edited
	if len(j.Edited) == 0 {
		e.Edited = nil
	}
	return e, nil
}

func parseTime(text string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, text)
	at = at.UTC()
	return at, err == nil && at.Year() >= 0 && at.Year() <= 9999
}
