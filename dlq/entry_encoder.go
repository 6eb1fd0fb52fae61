package dlq

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// EntryEncoder is [Entry.Record] for many entries in a row that say the same of
// different letters, but for where these were brought back to. It gives the same
// records; what is the same as in the call before is not encoded again, and records
// and bytes come from larger pieces of memory, of which a few serve many entries.
//
// The zero value is ready to use. An EntryEncoder must not be used concurrently.
type EntryEncoder struct {
	last       Entry
	head, tail []byte // of its value, what stands before and behind the target
	records    []kgo.Record
	text       []byte
}

// What an encoder allocates at a time: less than 32 KiB, since the runtime has more to do for what is larger.
const (
	chunkRecords = 128
	chunkText    = 24 << 10
)

// Record returns what e.Record does.
func (c *EntryEncoder) Record(e *Entry, ledger string, partition int32, offset int64) *kgo.Record {
	if e.State == "" || e.Target.Topic == "" || len(e.Edited) > 0 {
		return e.Record(ledger, partition, offset)
	}
	if c.head == nil || !e.differsInTarget(&c.last) {
		c.last = *e
		c.head = e.appendHead(nil)
		c.tail = e.appendTail(nil)
	}
	if len(c.records) == 0 {
		c.records = make([]kgo.Record, chunkRecords)
	}
	r := &c.records[0]
	c.records = c.records[1:]
	if need := len(c.head) + len(c.tail) + len(e.Target.Topic) + 80; cap(c.text)-len(c.text) < need {
		c.text = make([]byte, 0, max(chunkText, need))
	}
	at := len(c.text)
	c.text = strconv.AppendInt(c.text, offset, 10)
	r.Key = c.text[at:len(c.text):len(c.text)]
	at = len(c.text)
	c.text = append(c.text, c.head...)
	c.text = e.appendTarget(c.text)
	c.text = append(c.text, c.tail...)
	r.Value = c.text[at:len(c.text):len(c.text)]
	r.Topic, r.Partition = ledger, partition
	return r
}

// differsInTarget reports whether two entries without edits differ in nothing but where the letter was brought back to.
func (e *Entry) differsInTarget(other *Entry) bool {
	return e.TopicID == other.TopicID && e.State == other.State && e.Run == other.Run && e.At.Equal(other.At) && e.Since.Equal(other.Since) && e.By == other.By &&
		e.Why == other.Why && e.Class == other.Class
}
