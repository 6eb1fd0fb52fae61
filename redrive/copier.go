package redrive

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// copier makes the copies of letters. Most copies go to their groups' tiers, and keep siding's
// headers of the letter unparsed, because parsing is the most expensive step. The plan has parsed
// these headers, and skips a letter with damaged headers. Records and bytes come from larger
// allocations, each for many letters.
//
// A copier is not safe for concurrent use.
type copier struct {
	run        *ownedRun
	mark       []byte // the fields of the run
	edited     bool   // the user's headers
	originals  *originals
	targetID   [16]byte // of the named target; zero if unknown
	partitions int      // of the source, or of the named target; -1 if unknown
	tiers      map[destination]string

	out  []outgoing
	all  []kgo.RecordHeader
	text []byte
}

// Sizes of a copier's allocations: below 32 KiB, because larger ones cost the runtime more.
const (
	chunkLetters = 160
	chunkHeaders = 800
	chunkText    = 16 << 10
)

// A copy on a tier has no attempts yet, and is due at the epoch. That is past by every clock, so a
// clock that is hours wrong delays nothing.
var (
	untried   = []byte("0")
	dueAtOnce = []byte("0") // of 1970
)

// notSent stands for the time of a redrive until a transaction sends the copy. No time until 2286
// has more digits.
const notSent = "1000000000000"

var notSentAt = time.UnixMilli(1_000_000_000_000)

func newCopier(run *ownedRun) *copier {
	mark := reserved.AppendField(nil, reserved.RedriveID, run.rec.ID)
	if n := run.rec.MaxAttempts; n > 0 {
		mark = reserved.AppendField(mark, reserved.RedriveMaxAttempts, strconv.Itoa(n))
	}
	return &copier{run: run, mark: mark, edited: run.rec.Edit.headers(), originals: &originals{run: run}, partitions: -1, tiers: map[destination]string{}}
}

// copy makes the copy of a letter, or returns the reason for skipping it. After an error it returns
// neither, and the caller retries.
func (c *copier) copy(ctx context.Context, r *kgo.Record) (o *outgoing, skipped string, err error) {
	if len(c.out) == 0 {
		c.out = make([]outgoing, chunkLetters)
	}
	o, c.out = &c.out[0], c.out[1:]
	o.Place = letters.At(r.Partition, r.Offset)
	o.copy.Key, o.copy.Value = r.Key, r.Value
	edit, omitted := &c.run.rec.Edit, false
	if c.run.rec.toTier() {
		omitted = c.forTier(o, r)
	} else {
		omitted = c.forTopic(o, r)
	}
	switch {
	case c.partitions >= 0 && int(o.copy.Partition) >= c.partitions:
		return nil, SkippedNoPartition, fmt.Errorf("its partition is %d, and there are %d", o.copy.Partition, c.partitions)
	case o.copy.Topic == "" && o.group == "":
		return nil, SkippedNoGroup, nil
	case o.copy.Topic == "":
		return nil, SkippedNoTier, nil
	}
	if omitted && edit.Value == nil {
		if o.copy.Value, err = c.originals.value(ctx, r); errors.Is(err, errValueLost) {
			return nil, SkippedValueLost, err
		} else if err != nil {
			return nil, "", err
		}
	}
	if edit.Value != nil {
		o.copy.Value = edit.newValue()
	} else if edit.Patch != nil {
		letter := *r
		letter.Value = o.copy.Value
		if o.copy.Value, err = edit.valueBy(ctx, c.run.r.cfg.Values, &letter); err != nil {
			return nil, SkippedEdit, err
		}
	}
	return o, "", nil
}

// A copy for a tier keeps these headers of the letter, and these fields.
var (
	keptHeaders = reserved.SetOf(reserved.OriginalTopic, reserved.OriginalPartition, reserved.OriginalOffset, reserved.Group)
	keptFields  = reserved.SetOf(reserved.OriginalTopicID, reserved.OriginalTimestamp, reserved.FirstFailedAt, reserved.History,
		reserved.TraceParent, reserved.ConsumerVersion, reserved.Environment, reserved.Host, reserved.RedriveOriginal)
)

// forTier addresses a copy to its group's tier and writes its headers, as for a record that has yet
// to fail there. The copy's topic stays empty if the run has no tier for it. forTier reports
// whether the letter lacks its value.
func (c *copier) forTier(o *outgoing, r *kgo.Record) (omitted bool) {
	const added = 3
	if need := len(r.Headers) + len(c.run.rec.Edit.Set) + added; cap(c.all)-len(c.all) < need {
		c.all = make([]kgo.RecordHeader, 0, max(chunkHeaders, need))
	}
	all := c.all[len(c.all):]
	if c.edited {
		all = append(all, c.run.rec.Edit.headersOf(headers.Strip(r.Headers))...)
	}
	var letter reserved.Fields
	for _, h := range r.Headers {
		code := reserved.Of(h.Key)
		if code == reserved.User {
			if !c.edited {
				all = append(all, h)
			}
			continue
		}
		if keptHeaders.Has(code) {
			// The key is a constant, so the letter's own bytes can be freed.
			all = append(all, kgo.RecordHeader{Key: code.String(), Value: h.Value})
		}
	}
	letter.Read(r.Headers)
	all = append(all,
		kgo.RecordHeader{Key: headers.Attempts, Value: untried},
		kgo.RecordHeader{Key: headers.NotBefore, Value: dueAtOnce},
		kgo.RecordHeader{Key: headers.MetaFields, Value: c.metaOf(r, &letter)})
	o.meta = len(all) - 1
	c.all = c.all[:len(c.all)+len(all)]
	to := destination{group: c.group(letter.Value[reserved.Group]), partition: int32(number(letter.Value[reserved.OriginalPartition]))}
	o.group = to.group
	o.copy.Topic, o.copy.Partition, o.copy.Headers = c.tier(to), to.partition, all[:len(all):len(all)]
	return letter.Present.Has(reserved.ValueOmitted)
}

// metaOf returns the fields of a copy for a tier: those of the letter that it keeps, those that
// this version does not know, and the run's. Its time comes last, where [outgoing.setSent] finds
// it.
func (c *copier) metaOf(r *kgo.Record, letter *reserved.Fields) []byte {
	need := len(c.mark) + len(r.Topic) + len(letter.Value[reserved.FailedAt]) + 128
	for k := range reserved.Count {
		if keptFields.Has(k) && letter.Present.Has(k) {
			need += 3*len(letter.Value[k]) + 16
		}
	}
	if need += len(letter.Unknown); cap(c.text)-len(c.text) < need {
		c.text = make([]byte, 0, max(chunkText, need))
	}
	b := c.text[len(c.text):]
	for k := range reserved.Count {
		switch {
		case !keptFields.Has(k) || !letter.Present.Has(k):
		case letter.InMeta.Has(k):
			b = append(append(reserved.BeginField(b, k), letter.Value[k]...), ';')
		default:
			b = reserved.AppendField(b, k, letter.Value[k])
		}
	}
	if letter.Present.Has(reserved.Meta) && !letter.Present.Has(reserved.FirstFailedAt) && letter.Present.Has(reserved.FailedAt) &&
		string(letter.Value[reserved.FailureReason]) != string(headers.ReasonMalformed) {
		b = reserved.AppendField(b, reserved.FirstFailedAt, letter.Value[reserved.FailedAt])
	}
	b = append(append(b, "hops=1;"...), letter.Unknown...)
	b = append(append(b, c.mark...), "runs="...)
	b = strconv.AppendInt(b, min(max(number(letter.Value[reserved.RedriveCount]), 0)+1, headers.MaxAttempts), 10)
	b = append(append(b, ";from="...), r.Topic...)
	b = strconv.AppendInt(append(b, '/'), int64(r.Partition), 10)
	b = strconv.AppendInt(append(b, '/'), r.Offset, 10)
	b = append(b, ";sent="+notSent+";"...)
	c.text = c.text[:len(c.text)+len(b)]
	return b[:len(b):len(b)]
}

// forTopic addresses a copy to the named target: the user's record, with the mark of the run. On
// the source, it has the record's story too, and the mark names the original position, so that the
// idempotency key is the same as on a tier. On a source that was recreated, or whose id is unknown,
// the mark does not: that position may be another record's.
func (c *copier) forTopic(o *outgoing, r *kgo.Record) (omitted bool) {
	m, _ := headers.Parse(r.Headers) // other tools' letters go there too
	l := &dlq.Letter{Record: r, Meta: m}
	target, user := c.run.rec.Target, r.Headers
	mark := headers.Redrive{
		ID: c.run.rec.ID, Count: m.Redrive.Count + 1, From: o.In(r.Topic), Original: m.Redrive.Original,
		At: notSentAt, MaxAttempts: c.run.rec.MaxAttempts,
	}
	if mark.Original.Topic == "" {
		mark.Original = m.Original
	}
	if mark.Original.Topic != target.Topic || m.Original.TopicID != c.targetID || c.targetID == ([16]byte{}) {
		mark.Original = headers.Position{} // not valid on this topic
	}
	if c.edited {
		user = c.run.rec.Edit.headersOf(headers.Strip(user))
	}
	back := headers.Meta{Redrive: mark}
	if target.Topic == c.run.topics.source { // elsewhere no consumer reads it
		back.FirstFailedAt, back.History = m.FirstFailedAt, m.History
	}
	o.group = c.group([]byte(m.Group))
	o.copy.Topic, o.copy.Partition, o.copy.Headers = target.Topic, homeOf(l, c.run.topics.source), back.AppendSource(user)
	o.meta = len(o.copy.Headers) - 1
	if target.KeepTimestamp {
		o.copy.Timestamp = originalTime(l)
	}
	return m.ValueOmitted
}

// group returns the run's own string of a group's name, because a substring of the letter would
// keep the whole letter in memory.
func (c *copier) group(name []byte) string {
	for _, g := range c.run.rec.Groups {
		if g == string(name) {
			return g
		}
	}
	return string(name)
}

// tier returns the retry topic of a destination; empty if the run has none.
func (c *copier) tier(to destination) string {
	tier, ok := c.tiers[to]
	if !ok {
		tier = c.run.rec.Tiers[to.String()]
		c.tiers[to] = tier
	}
	return tier
}

// number parses a number that the plan has checked; none is 0.
func number(b []byte) int64 {
	if len(b) == 0 {
		return 0 // the error would take memory
	}
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return n
}
