package redrive

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/headers"
)

// One partition, of which the offset 10 is asked for, over some looks.
func TestWhoMovedAnOffsetSaysWhetherRecordsRan(t *testing.T) {
	t.Parallel()
	const topic, none, fails = "orders.retry.5s", -1, -2
	type look struct {
		at     int64
		meta   string
		member string
	}
	for name, c := range map[string]struct {
		looks []look
		want  progress
	}{
		"a consumer":                               {[]look{{5, "siding", "a"}, {20, "siding", "a"}}, progressPast},
		"a consumer's last commit":                 {[]look{{5, "siding", "a"}, {20, "siding", ""}}, progressPast},
		"two consumers":                            {[]look{{5, "siding", "a"}, {20, "siding", "b"}}, progressPast},
		"a consumer of a later version":            {[]look{{5, "siding", "a"}, {20, "siding 2 x", "b"}}, progressPast},
		"a consumer's first commit":                {[]look{{none, "", ""}, {20, "siding", "a"}}, progressPast},
		"a consumer, and a look failed":            {[]look{{5, "siding", "a"}, {fails, "", "a"}, {20, "siding", "b"}}, progressPast},
		"another consumer, which stays":            {[]look{{5, "", "a"}, {20, "", "a"}}, progressPast},
		"another one, in place of siding's":        {[]look{{5, "siding", "a"}, {20, "", "a"}}, progressPast},
		"a tool, while nobody was there":           {[]look{{5, "siding", ""}, {20, "", ""}}, progressUnknown},
		"a tool, as the consumer stopped":          {[]look{{5, "siding", "a"}, {20, "", ""}}, progressUnknown},
		"a tool, as the consumer started":          {[]look{{5, "siding", ""}, {20, "", "a"}}, progressUnknown},
		"a tool, between two consumers":            {[]look{{5, "siding", "a"}, {20, "", "b"}}, progressUnknown},
		"a tool, and a look failed":                {[]look{{5, "siding", "a"}, {fails, "", ""}, {20, "", ""}}, progressUnknown},
		"a tool, up to it":                         {[]look{{5, "siding", "a"}, {10, "", ""}, {20, "siding", "a"}}, progressPast},
		"a tool, once it was deleted":              {[]look{{5, "siding", "a"}, {none, "", ""}, {20, "", ""}}, progressUnknown},
		"a tool, where there was none":             {[]look{{none, "", ""}, {20, "", ""}}, progressUnknown},
		"a consumer, where another one is deleted": {[]look{{5, "siding", "a"}, {none, "", ""}, {20, "siding", "b"}}, progressUnknown},
		"a tool, back":                             {[]look{{20, "siding", "a"}, {5, "", ""}}, progressUnknown},
		"a look fails":                             {[]look{{20, "siding", "a"}, {fails, "", "a"}}, progressPast},
		"it is deleted":                            {[]look{{20, "siding", "a"}, {none, "", ""}}, progressBehind},
	} {
		var g *groupOffsets
		for _, l := range c.looks {
			offsets := kadm.OffsetResponses{}
			if l.at != none {
				r := kadm.OffsetResponse{Offset: kadm.Offset{Topic: topic, At: l.at, Metadata: l.meta}}
				if l.at == fails {
					r.Err = errors.New("it is not stable")
				}
				offsets[topic] = map[int32]kadm.OffsetResponse{0: r}
			}
			var ids []string
			if l.member != "" {
				ids = []string{l.member}
			}
			g = g.next(ids, offsets)
		}
		at := headers.Position{Topic: topic, Offset: 10}
		if got := g.progressOn(at, kadm.ListedOffsets{topic: {0: {Topic: topic}}}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
