package redrive

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// copier makes the copies of letters. Most go back to their groups' tiers. What such a copy keeps
// of siding's headers is kept as it stands in the letter, unparsed: to parse and write the headers
// again takes longer than all else that is done for a letter. The plan has parsed them, and takes
// no letter to a tier whose headers are broken. Records and bytes come from larger pieces of
// memory, of which a few serve many letters.
//
// It must not be used concurrently.
type copier struct {
	h         *ownedRun
	run       []byte
	edited    bool // the user's headers
	originals *originals
	targetID  [16]byte // of the target that was named; zero where it is not known
	tiers     map[destination]string

	out  []outgoing
	all  []kgo.RecordHeader
	text []byte
}

// What a copier allocates at a time: less than 32 KiB, since the runtime has more to do for what is
// larger.
const (
	chunkLetters = 160
	chunkHeaders = 800
	chunkText    = 16 << 10
)

// What a copy on a tier says of itself: it has not run yet, and is due at once, which is in the
// past by every clock. Whose clock is wrong by hours, the operator's or the consumer's, nobody
// waits for it.
var (
	untried   = []byte("0")
	dueAtOnce = []byte("0") // of 1970
	firstHop  = []byte("1")
)

func newCopier(h *ownedRun) *copier {
	return &copier{h: h, run: []byte(h.rec.ID), edited: h.rec.Edit.headers(), originals: &originals{run: h}, tiers: map[destination]string{}}
}

// copy makes the copy of a letter, or says why it is not sent; neither if the broker has to be
// asked again.
func (c *copier) copy(ctx context.Context, r *kgo.Record) (o *outgoing, skipped string, err error) {
	if len(c.out) == 0 {
		c.out = make([]outgoing, chunkLetters)
	}
	o, c.out = &c.out[0], c.out[1:]
	o.Place = letters.At(r.Partition, r.Offset)
	o.copy.Key, o.copy.Value = r.Key, r.Value
	edit, omitted := &c.h.rec.Edit, false
	if c.h.rec.toTier() {
		omitted = c.forTier(o, r)
	} else {
		omitted = c.forTopic(o, r)
	}
	if o.copy.Topic == "" {
		return nil, SkippedNoGroup, nil
	}
	if omitted && edit.Value == nil {
		if o.copy.Value, err = c.originals.value(ctx, r); errors.Is(err, errValueLost) {
			return nil, SkippedValueLost, err
		} else if err != nil {
			return nil, "", err
		}
	}
	if o.copy.Value, err = edit.valueOf(o.copy.Value, c.h.r.cfg.MergePatch); err != nil {
		return nil, SkippedEdit, err
	}
	return o, "", nil
}

// What a copier does with siding's headers of a letter that goes to a tier.
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
		headers.TraceParent: keeps, headers.ConsumerVersion: keeps, headers.Environment: keeps, headers.Host: keeps, headers.RedriveOriginal: keeps,
		headers.OriginalPartition: keepsPartition, headers.Group: keepsGroup, headers.RedriveCount: dropsCount, headers.ValueOmitted: dropsOmitted,
	} {
		t[reserved.Of(key)] = what
	}
	return t
}()

// forTier addresses a copy to the tier of its group, and writes its headers: it is a record that
// has yet to fail there, with its origin. The topic stays empty where the run has no tier for it.
// It reports whether the letter lacks its value.
func (c *copier) forTier(o *outgoing, r *kgo.Record) (omitted bool) {
	const added = 6
	if need := len(r.Headers) + len(c.h.rec.Edit.Set) + added; cap(c.all)-len(c.all) < need {
		c.all = make([]kgo.RecordHeader, 0, max(chunkHeaders, need))
	}
	all := c.all[len(c.all):]
	if c.edited {
		all = append(all, c.h.rec.Edit.headersOf(headers.Strip(r.Headers))...)
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
		// With a key that lives for ever, so that the letter's own need not.
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
		kgo.RecordHeader{Key: headers.RedriveID, Value: c.run},
		kgo.RecordHeader{Key: headers.RedriveCount, Value: count},
		kgo.RecordHeader{Key: headers.RedriveFrom, Value: c.from(r)})
	c.all = c.all[:len(c.all)+len(all)]
	o.group = to.group
	o.copy.Topic, o.copy.Partition, o.copy.Headers = c.tier(to), to.partition, all[:len(all):len(all)]
	return omitted
}

// forTopic addresses a copy to the topic that was named: it is the user's record, with the mark of
// the run. On its source the mark says where the record was first read. So the idempotency key
// stays the same as on a tier. On a source that was recreated since, and where that is not known,
// it does not: that place is another record's there.
func (c *copier) forTopic(o *outgoing, r *kgo.Record) (omitted bool) {
	m, _ := headers.Parse(r.Headers) // of a letter of another tool too
	l := &dlq.Letter{Record: r, Meta: m}
	target, user := c.h.rec.Target, r.Headers
	mark := headers.Redrive{ID: c.h.rec.ID, Count: m.Redrive.Count + 1, From: o.In(r.Topic), Original: m.Redrive.Original}
	if mark.Original.Topic == "" {
		mark.Original = m.Original
	}
	if mark.Original.Topic != target.Topic || m.Original.TopicID != c.targetID || c.targetID == ([16]byte{}) {
		mark.Original = headers.Position{} // nobody believes it there, or it is another record's
	}
	if c.edited {
		user = c.h.rec.Edit.headersOf(headers.Strip(user))
	}
	o.group = c.group([]byte(m.Group))
	o.copy.Topic, o.copy.Partition, o.copy.Headers = target.Topic, homeOf(l, c.h.topics.source), mark.Append(user)
	if target.KeepTimestamp {
		o.copy.Timestamp = originalTime(l)
	}
	return m.ValueOmitted
}

// group is the run's own string of a group's name: that of a letter keeps all of its story in
// memory.
func (c *copier) group(name []byte) string {
	for _, g := range c.h.rec.Groups {
		if g == string(name) {
			return g
		}
	}
	return string(name)
}

// tier is where letters of a destination go; empty where the run has none.
func (c *copier) tier(to destination) string {
	tier, ok := c.tiers[to]
	if !ok {
		tier = c.h.rec.Tiers[to.String()]
		c.tiers[to] = tier
	}
	return tier
}

// from is where a letter stands, as a header has it.
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

// number is one that the plan has parsed.
func number(b []byte) int64 {
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return n
}
