package dlq

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// DiscardNote is a consumer's note that it discarded a record. There is no copy of such a record.
// Consumers write notes if Policy.NoteDiscards of package consumer is set. A note has neither key,
// value nor message of the record.
type DiscardNote struct {
	// Group is the consumer group that discarded the record.
	Group string
	// Partition and Offset are the record's on its source topic.
	Partition int32
	Offset    int64
	// Original is where the record was first read: at another offset if a run redrove it to its
	// source. Its TopicID is that of the source. If the record's headers do not name a position of
	// the source, Original, Partition and Offset are its position on the retry topic.
	Original headers.Position
	// Class is the class of the last failure, and Attempts the number of deliveries.
	Class    string
	Attempts int
	// At is when the consumer discarded the record.
	At time.Time
}

// discardNoteKey begins the keys of discard notes. The group, the topic and the offset follow.
const discardNoteKey = "discarded/"

// discardNoteVersion is the version of a note's JSON.
const discardNoteVersion = 1

// Record returns the ledger's record of the note. Its key is "discarded/<group>/<topic>/<offset>",
// and its partition the source's. So a record that is discarded again, after a crash, has one note.
// No letter and no run has such a key.
func (n *DiscardNote) Record(ledger string) *kgo.Record {
	b := make([]byte, 0, 256+2*len(n.Group)+2*len(n.Original.Topic))
	b = append(append(append(b, discardNoteKey...), n.Group...), '/')
	b = append(append(b, n.Original.Topic...), '/')
	b = strconv.AppendInt(b, n.Offset, 10)
	r := &kgo.Record{Topic: ledger, Partition: n.Partition, Key: b[:len(b):len(b)]}
	b = b[len(b):]
	b = append(b, `{"v":`...)
	b = strconv.AppendInt(b, discardNoteVersion, 10)
	if id := n.Original.TopicID; id != ([16]byte{}) {
		b = append(b, `,"topicId":"`...)
		b = append(base64.RawURLEncoding.AppendEncode(b, id[:]), '"')
	}
	b = appendField(b, "group", n.Group)
	b = appendField(b, "class", n.Class)
	b = strconv.AppendInt(appendName(b, "attempts"), int64(n.Attempts), 10)
	b = appendTime(b, "at", n.At)
	b = appendField(b, "original", n.Original.String())
	b = append(b, '}')
	r.Value = b
	return r
}

// isDiscardNote reports whether a record of a ledger is a discard note, or broken as such.
func isDiscardNote(r *kgo.Record) bool { return bytes.HasPrefix(r.Key, []byte(discardNoteKey)) }

// discardNoteOf returns what a discard note with the key is about: "<group>/<topic>" and the
// offset. ok is false for other keys.
func discardNoteOf(key []byte) (groupTopic string, offset int64, ok bool) {
	about, ok := bytes.CutPrefix(key, []byte(discardNoteKey))
	at := bytes.LastIndexByte(about, '/')
	if !ok || at < 0 || bytes.LastIndexByte(about[:at], '/') < 1 {
		return "", -1, false
	}
	offset, ok = ledgerrecord.ParseOffset(about[at+1:])
	return string(about[:at]), offset, ok
}

// readDiscardNote reads the note of a record with such a key. A record without a value gives nil:
// it deletes the note before it. The error is an *EntryError.
func readDiscardNote(r *kgo.Record) (*DiscardNote, error) {
	if r.Value == nil {
		return nil, nil
	}
	n, err := parseDiscardNote(r)
	if err != nil {
		return nil, newEntryError(r, fmt.Errorf("%w: %w", errDiscardNote, err))
	}
	return n, nil
}

func parseDiscardNote(r *kgo.Record) (*DiscardNote, error) {
	var j struct {
		V                                   int
		TopicID, Group, Class, At, Original string
		Attempts                            int
	}
	err := json.Unmarshal(r.Value, &j)
	if j.V > discardNoteVersion {
		return nil, fmt.Errorf("it has version %d, and this siding reads version %d: %w", j.V, discardNoteVersion, ErrNewerVersion)
	}
	if err != nil {
		return nil, err
	}
	n := &DiscardNote{Partition: r.Partition, Class: j.Class, Attempts: j.Attempts}
	groupTopic, offset, ok := discardNoteOf(r.Key)
	at := strings.LastIndexByte(groupTopic, '/') // a group may have slashes, a topic has none
	if !ok {
		return nil, errors.New("its key has no group, topic and offset")
	}
	n.Group, n.Offset = groupTopic[:at], offset
	switch {
	case j.V < 1:
		return nil, errors.New("it names no version")
	case j.Group != n.Group:
		return nil, fmt.Errorf("its group is %.40q", j.Group)
	case j.Class != "" && !classify.ValidClass(j.Class):
		return nil, fmt.Errorf("its class is %.40q", j.Class)
	case j.Attempts < 0:
		return nil, fmt.Errorf("it has %d attempts", j.Attempts)
	}
	if n.At, ok = parseTime(j.At); !ok {
		return nil, fmt.Errorf("its time is %.40q", j.At)
	}
	if n.Original, err = headers.ParsePosition(j.Original); err != nil {
		return nil, fmt.Errorf("its original position %.80q: %w", j.Original, err)
	}
	if n.Original.Topic != groupTopic[at+1:] {
		return nil, fmt.Errorf("its original position is %.80q", j.Original)
	}
	if j.TopicID != "" {
		id, err := base64.RawURLEncoding.Strict().DecodeString(j.TopicID)
		if err != nil || len(id) != len(n.Original.TopicID) {
			return nil, fmt.Errorf("its topic id is %.40q", j.TopicID)
		}
		copy(n.Original.TopicID[:], id)
	}
	return n, nil
}
