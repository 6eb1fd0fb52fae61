package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	run         *ownedRun
	runID       []byte
	maxAttempts []byte // nil without a bound
	edited      bool   // the user's headers
	originals   *originals
	targetID    [16]byte // of the named target; zero if unknown
	partitions  int      // of the source, or of the named target; -1 if unknown
	tiers       map[destination]string

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

// Headers of a copy on a tier: it has no attempts yet, and is due at the epoch. That is past by
// every clock, so a clock that is hours wrong delays nothing.
var (
	untried   = []byte("0")
	dueAtOnce = []byte("0") // of 1970
	unsentAt  = []byte("0") // until a transaction sends the copy
	firstHop  = []byte("1")
)

func newCopier(run *ownedRun) *copier {
	c := &copier{run: run, runID: []byte(run.rec.ID), edited: run.rec.Edit.headers(), originals: &originals{run: run}, partitions: -1, tiers: map[destination]string{}}
	if n := run.rec.MaxAttempts; n > 0 {
		c.maxAttempts = strconv.AppendInt(nil, int64(n), 10)
	}
	return c
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
	if o.copy.Value, err = edit.valueOf(o.copy.Value); err != nil {
		return nil, SkippedEdit, err
	}
	return o, "", nil
}

// The treatment of each of siding's headers in a copy for a tier.
const (
	drops = iota
	keeps
	keepsPartition
	keepsGroup
	dropsCount
	dropsOmitted
)

var does = func() (t [256]uint8) {
	for key, what := range map[string]uint8{
		headers.OriginalTopic: keeps, headers.OriginalOffset: keeps, headers.OriginalTopicID: keeps, headers.OriginalTimestamp: keeps,
		headers.FirstFailedAt: keeps, headers.History: keeps,
		headers.TraceParent: keeps, headers.ConsumerVersion: keeps, headers.Environment: keeps, headers.Host: keeps, headers.RedriveOriginal: keeps,
		headers.OriginalPartition: keepsPartition, headers.Group: keepsGroup, headers.RedriveCount: dropsCount, headers.ValueOmitted: dropsOmitted,
	} {
		t[reserved.Of(key)] = what
	}
	return t
}()

// forTier addresses a copy to its group's tier and writes its headers, as for a record that has yet
// to fail there. The copy's topic stays empty if the run has no tier for it. forTier reports
// whether the letter lacks its value.
func (c *copier) forTier(o *outgoing, r *kgo.Record) (omitted bool) {
	const added = 8
	if need := len(r.Headers) + len(c.run.rec.Edit.Set) + added; cap(c.all)-len(c.all) < need {
		c.all = make([]kgo.RecordHeader, 0, max(chunkHeaders, need))
	}
	all := c.all[len(c.all):]
	if c.edited {
		all = append(all, c.run.rec.Edit.headersOf(headers.Strip(r.Headers))...)
	}
	var (
		to       destination
		redrives int64
	)
	for _, h := range r.Headers {
		code := reserved.Of(h.Key)
		if code == reserved.User {
			if !c.edited {
				all = append(all, h)
			}
			continue
		}
		switch does[code] {
		case keeps:
		case keepsPartition:
			to.partition = int32(number(h.Value))
		case keepsGroup:
			to.group = c.group(h.Value)
		case dropsCount:
			redrives = number(h.Value)
			continue
		case dropsOmitted:
			omitted = true
			continue
		default:
			continue
		}
		// The key is a constant, so the letter's own bytes can be freed.
		all = append(all, kgo.RecordHeader{Key: code.String(), Value: h.Value})
	}
	count := firstHop
	if redrives > 0 {
		count = strconv.AppendInt(nil, min(redrives+1, headers.MaxAttempts), 10)
	}
	all = append(all,
		kgo.RecordHeader{Key: headers.Attempts, Value: untried},
		kgo.RecordHeader{Key: headers.NotBefore, Value: dueAtOnce},
		kgo.RecordHeader{Key: headers.Hops, Value: firstHop},
		kgo.RecordHeader{Key: headers.RedriveID, Value: c.runID},
		kgo.RecordHeader{Key: headers.RedriveCount, Value: count},
		kgo.RecordHeader{Key: headers.RedriveFrom, Value: c.from(r)},
		kgo.RecordHeader{Key: headers.RedriveAt, Value: unsentAt})
	o.redriveAt = len(all) - 1
	if c.maxAttempts != nil {
		all = append(all, kgo.RecordHeader{Key: headers.RedriveMaxAttempts, Value: c.maxAttempts})
	}
	c.all = c.all[:len(c.all)+len(all)]
	o.group = to.group
	o.copy.Topic, o.copy.Partition, o.copy.Headers = c.tier(to), to.partition, all[:len(all):len(all)]
	return omitted
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
		At: time.UnixMilli(0), MaxAttempts: c.run.rec.MaxAttempts,
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
	o.redriveAt = slices.IndexFunc(o.copy.Headers, isRedriveAt)
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

// from returns the value of the header that names the letter.
func (c *copier) from(r *kgo.Record) []byte {
	if need := len(r.Topic) + 40; cap(c.text)-len(c.text) < need {
		c.text = make([]byte, 0, max(chunkText, need))
	}
	begin := len(c.text)
	c.text = append(c.text, r.Topic...)
	c.text = append(c.text, '/')
	c.text = strconv.AppendInt(c.text, int64(r.Partition), 10)
	c.text = append(c.text, '/')
	c.text = strconv.AppendInt(c.text, r.Offset, 10)
	return c.text[begin:len(c.text):len(c.text)]
}

// number parses a number that the plan has checked.
func number(b []byte) int64 {
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return n
}
