package redrive

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// copier makes the copies of letters that go back to their groups' tiers as they are, which most do: what a copy keeps of a letter's
// headers is kept as it stands there, without being read and written again: a plan takes no letter to a tier whose headers are broken.
// What is not plain is left to [held.prepare], which gives the same otherwise. Records and bytes come from larger pieces of memory, of which a few serve many letters.
//
// It must not be used concurrently.
type copier struct {
	h     *held
	off   bool // the run changes letters, or sends them elsewhere
	run   []byte
	tiers map[destination]string

	out  []outgoing
	all  []kgo.RecordHeader
	text []byte
	now  time.Time
	due  []byte // now, as a header has it
	left int    // letters for which now is good enough
}

// What a copier allocates at a time.
const (
	chunkLetters = 256
	chunkHeaders = 4_096
	chunkText    = 16 << 10
)

var (
	zeroText = []byte("0")
	oneText  = []byte("1")
)

func newCopier(h *held) *copier {
	return &copier{h: h, off: h.rec.Target.Topic != "" || !h.rec.Edit.IsZero(), run: []byte(h.rec.ID), tiers: map[destination]string{}}
}

// The headers that a copy keeps, but for the user's.
const (
	keepsTopic = 1 << iota
	keepsPartition
	keepsOffset
	keepsGroup
	keepsTopicID
	keepsTimestamp
	keepsTraceParent
	keepsVersion
	keepsEnvironment
	keepsHost
	hasCount
	hasID
	hasFrom
	hasAttempts

	needed   = keepsTopic | keepsPartition | keepsOffset | keepsGroup | hasAttempts
	redriven = hasCount | hasID | hasFrom
)

// plain makes the copy of a letter; nil where it is not as siding writes them.
func (c *copier) plain(r *kgo.Record) *outgoing {
	if c.off {
		return nil
	}
	const added = 6
	if need := len(r.Headers) + added; cap(c.all)-len(c.all) < need {
		c.all = make([]kgo.RecordHeader, 0, max(chunkHeaders, need))
	}
	var (
		all      = c.all[len(c.all):]
		seen     uint32
		twice    bool
		to       destination
		redrives int64
	)
	keep := func(bit uint32, h kgo.RecordHeader) {
		twice = twice || seen&bit != 0
		seen |= bit
		all = append(all, h)
	}
	note := func(bit uint32) {
		twice = twice || seen&bit != 0
		seen |= bit
	}
	for _, h := range r.Headers {
		switch h.Key {
		case headers.OriginalTopic:
			if string(h.Value) != c.h.topics.source {
				return nil
			}
			keep(keepsTopic, h)
		case headers.OriginalPartition:
			n, ok := digits(h.Value)
			if !ok {
				return nil
			}
			to.partition = int32(n)
			keep(keepsPartition, h)
		case headers.Group:
			to.group = c.group(h.Value)
			keep(keepsGroup, h)
		case headers.OriginalOffset:
			keep(keepsOffset, h)
		case headers.OriginalTopicID:
			keep(keepsTopicID, h)
		case headers.OriginalTimestamp:
			keep(keepsTimestamp, h)
		case headers.TraceParent:
			keep(keepsTraceParent, h)
		case headers.ConsumerVersion:
			keep(keepsVersion, h)
		case headers.Environment:
			keep(keepsEnvironment, h)
		case headers.Host:
			keep(keepsHost, h)
		case headers.RedriveCount:
			n, ok := digits(h.Value)
			if !ok {
				return nil
			}
			redrives = n
			note(hasCount)
		case headers.RedriveID:
			note(hasID)
		case headers.RedriveFrom:
			note(hasFrom)
		case headers.Attempts:
			note(hasAttempts)
		case headers.ValueOmitted:
			return nil
		default:
			if !headers.Reserved(h.Key) {
				all = append(all, h)
			}
		}
	}
	if twice || seen&needed != needed || seen&redriven != 0 && seen&redriven != redriven {
		return nil
	}
	tier := c.tier(to)
	if tier == "" {
		return nil
	}
	count := oneText
	if redrives > 0 {
		count = strconv.AppendInt(nil, redrives+1, 10)
	}
	all = append(all,
		kgo.RecordHeader{Key: headers.Attempts, Value: zeroText},
		kgo.RecordHeader{Key: headers.NotBefore, Value: c.dueText()},
		kgo.RecordHeader{Key: headers.Hops, Value: oneText},
		kgo.RecordHeader{Key: headers.RedriveID, Value: c.run},
		kgo.RecordHeader{Key: headers.RedriveCount, Value: count},
		kgo.RecordHeader{Key: headers.RedriveFrom, Value: c.from(r)})
	c.all = c.all[:len(c.all)+len(all)]
	if len(c.out) == 0 {
		c.out = make([]outgoing, chunkLetters)
	}
	o := &c.out[0]
	c.out = c.out[1:]
	o.place, o.group = place{r.Partition, r.Offset}, to.group
	o.copy.Topic, o.copy.Partition, o.copy.Key, o.copy.Value, o.copy.Headers = tier, to.partition, r.Key, r.Value, all[:len(all):len(all)]
	return o
}

// group is the run's own string of a group's name; empty where it is none of the run's.
func (c *copier) group(name []byte) string {
	for _, g := range c.h.rec.Groups {
		if g == string(name) {
			return g
		}
	}
	return ""
}

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

// dueText is the time at which a copy is due: now, or a moment ago.
func (c *copier) dueText() []byte {
	if c.left == 0 {
		c.left = 64
		if now := time.Now(); now.UnixMilli() != c.now.UnixMilli() {
			c.now, c.due = now, strconv.AppendInt(nil, now.UnixMilli(), 10)
		}
	}
	c.left--
	return c.due
}

// digits reads a number as siding writes it; another one may mean the same, and is for [headers.Parse] to judge.
func digits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, len(b) > 0 && len(b) < 10
}
