package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/oversize"

	forward_ "github.com/sidingkafka/siding/consumer/internal/forward"
)

// forward is one copy on its way to a sibling. It is safe when the broker acknowledged it with all in-sync replicas; only then
// is the offset that it came from finished.
//
// It is also the context of its produced record, which is how kgo's promise finds it, whatever hooks of the user wrap around.
type forward struct {
	context.Context            // ends when the lane gives up what was not sent
	rec             kgo.Record // kgo's from the first try on
	written         []kgo.RecordHeader
	feed            *feed
	offset          int64
	due             time.Time // of a copy to a tier
	size            int64
	tries           int32 // that were refused
	checks          int8  // for its partition, see growthChecks
	via             forward_.Handover
	partition       int32         // the lane's, but for a note about a letter that is elsewhere
	alone           bool          // it goes by Consumer.solo: a batch that it was in was too large
	note            bool          // for the ledger, see discard.go
	shrunk          oversize.Step // what of it was given up
}

type forwardKey struct{}

// Value implements context.Context.
func (fw *forward) Value(key any) any {
	if key == (forwardKey{}) {
		return fw
	}
	return nil
}

// at is where the copy goes.
func (fw *forward) at() topicPartition {
	return topicPartition{fw.rec.Topic, fw.partition}
}

// sender are the clients that the copy goes by.
func (fw *forward) sender() *forward_.Producers {
	c := fw.feed.lane.c
	if fw.alone {
		return &c.single.Producers
	}
	return &c.producer
}

// headers are those that the copy is written with.
func (fw *forward) headers() []kgo.RecordHeader {
	h, _ := fw.shrunk.Of(fw.written, nil)
	return h
}

// freshRecord is the record of the next try, made anew, since kgo changes and keeps the one that it is given.
func (fw *forward) freshRecord() *kgo.Record {
	h, value := fw.shrunk.Of(fw.written, fw.rec.Value)
	return &kgo.Record{Topic: fw.rec.Topic, Partition: fw.partition, Key: fw.rec.Key, Value: value, Headers: h}
}

// unwritable reports whether a note need not be tried again: without a ledger, or with one that takes no entry, there is nobody to tell,
// and a header that somebody made up must not hold up a lane for ever. A run has no outcome without its ledger, so none is wrong.
func (fw *forward) unwritable(err error) bool {
	if !fw.note {
		return false
	}
	code := (*kerr.Error)(nil)
	nowhere := errors.Is(err, kerr.UnknownTopicOrPartition) || fw.partition != fw.feed.lane.partition && !errors.As(err, &code)
	return oversize.Refused(err) && fw.alone || nowhere && fw.tries >= noteTries
}
