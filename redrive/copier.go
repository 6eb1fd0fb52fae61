package redrive

import (
	"strconv"

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
}

// What a copier allocates at a time: less than 32 KiB, since the runtime has more to do for what is larger.
const (
	chunkLetters = 160
	chunkHeaders = 800
	chunkText    = 16 << 10
)

var (
	zeroText = []byte("0") // dueAtOnce, too
	oneText  = []byte("1")
)

func newCopier(h *held) *copier {
	return &copier{h: h, off: h.rec.Target.Topic != "" || !h.rec.Edit.IsZero(), run: []byte(h.rec.ID), tiers: map[destination]string{}}
}

// What a copier looks for in a letter's headers.
const (
	seesTopic = 1 << iota
	seesPartition
	seesOffset
	seesGroup
	seesTopicID
	seesTimestamp
	seesTraceParent
	seesVersion
	seesEnvironment
	seesHost
	seesAttempts
	seesCount
	seesID
	seesFrom
	seesReturned
	seesOmitted

	kept     = seesTopic | seesPartition | seesOffset | seesGroup | seesTopicID | seesTimestamp | seesTraceParent | seesVersion | seesEnvironment | seesHost | seesReturned
	needed   = seesTopic | seesPartition | seesOffset | seesGroup | seesAttempts
	redriven = seesCount | seesID | seesFrom // and seesReturned with these alone
)

// sees is that by the code of a header's key; siding's others are passed over.
var sees = func() (t [256]uint32) {
	for i, key := range []string{
		headers.OriginalTopic, headers.OriginalPartition, headers.OriginalOffset, headers.Group, headers.OriginalTopicID, headers.OriginalTimestamp,
		headers.TraceParent, headers.ConsumerVersion, headers.Environment, headers.Host, headers.Attempts, headers.RedriveCount, headers.RedriveID,
		headers.RedriveFrom, headers.RedriveOriginal, headers.ValueOmitted,
	} {
		t[headers.Code(key)] = 1 << i
	}
	return t
}()

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
		to       destination
		redrives int64
		ok       = true
	)
	for _, h := range r.Headers {
		code := headers.Code(h.Key)
		if code == 0 {
			all = append(all, h)
			continue
		}
		bit := sees[code]
		if seen&bit != 0 {
			return nil // it is there twice
		}
		seen |= bit
		if bit&kept != 0 { // with a key that lives for ever, so that the letter's own need not
			all = append(all, kgo.RecordHeader{Key: headers.Name(code), Value: h.Value})
		}
		switch bit {
		case seesTopic:
			ok = string(h.Value) == c.h.topics.source
		case seesPartition:
			var n int64
			n, ok = digits(h.Value)
			to.partition = int32(n)
		case seesGroup:
			to.group = c.group(h.Value)
		case seesCount:
			redrives, ok = digits(h.Value)
		case seesOmitted:
			ok = false
		}
		if !ok {
			return nil
		}
	}
	if seen&needed != needed || seen&(redriven|seesReturned) != 0 && seen&redriven != redriven {
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
		kgo.RecordHeader{Key: headers.NotBefore, Value: zeroText},
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
