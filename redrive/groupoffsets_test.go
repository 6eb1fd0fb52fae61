package redrive

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// The cases are some polls of one partition; the outcome needs offset 10.
func TestGroupOffsets_WhoMovedAnOffsetDecides(t *testing.T) {
	t.Parallel()
	const topic, none, fails = "orders.retry.5s", -1, -2
	type look struct {
		at     int64
		meta   string
		member string
	}
	for name, c := range map[string]struct {
		looks []look
		want  inflight.Progress
	}{
		"a consumer":                               {[]look{{5, "siding", "a"}, {20, "siding", "a"}}, inflight.Past},
		"a consumer's last commit":                 {[]look{{5, "siding", "a"}, {20, "siding", ""}}, inflight.Past},
		"two consumers":                            {[]look{{5, "siding", "a"}, {20, "siding", "b"}}, inflight.Past},
		"a consumer of a later version":            {[]look{{5, "siding", "a"}, {20, "siding 2 x", "b"}}, inflight.Past},
		"a consumer's first commit":                {[]look{{none, "", ""}, {20, "siding", "a"}}, inflight.Past},
		"a consumer, and a look failed":            {[]look{{5, "siding", "a"}, {fails, "", "a"}, {20, "siding", "b"}}, inflight.Past},
		"another consumer, which stays":            {[]look{{5, "", "a"}, {20, "", "a"}}, inflight.Past},
		"another one, in place of siding's":        {[]look{{5, "siding", "a"}, {20, "", "a"}}, inflight.Past},
		"a tool, while it had no members":          {[]look{{5, "siding", ""}, {20, "", ""}}, inflight.Unknown},
		"a tool, as the consumer stopped":          {[]look{{5, "siding", "a"}, {20, "", ""}}, inflight.Unknown},
		"a tool, as the consumer started":          {[]look{{5, "siding", ""}, {20, "", "a"}}, inflight.Unknown},
		"a tool, between two consumers":            {[]look{{5, "siding", "a"}, {20, "", "b"}}, inflight.Unknown},
		"a tool, and a look failed":                {[]look{{5, "siding", "a"}, {fails, "", ""}, {20, "", ""}}, inflight.Unknown},
		"a tool, up to it":                         {[]look{{5, "siding", "a"}, {10, "", ""}, {20, "siding", "a"}}, inflight.Past},
		"a tool, once it was deleted":              {[]look{{5, "siding", "a"}, {none, "", ""}, {20, "", ""}}, inflight.Unknown},
		"a tool, where there was none":             {[]look{{none, "", ""}, {20, "", ""}}, inflight.Unknown},
		"a consumer, where another one is deleted": {[]look{{5, "siding", "a"}, {none, "", ""}, {20, "siding", "b"}}, inflight.Unknown},
		"a tool, back":                             {[]look{{20, "siding", "a"}, {5, "", ""}}, inflight.Unknown},
		"a look fails":                             {[]look{{20, "siding", "a"}, {fails, "", "a"}}, inflight.Past},
		"it is deleted":                            {[]look{{20, "siding", "a"}, {none, "", ""}}, inflight.Behind},
	} {
		var g groupOffsets
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
		if got := g.progressOn(at, bounds.Positions{topic: {0: 0}}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestGroupOffsets_TellWhetherALetterRan(t *testing.T) {
	t.Parallel()
	at := headers.Position{Topic: "orders.retry.5s", Partition: 3, Offset: 10}
	for name, c := range map[string]struct {
		committed, start int64
		reset            span
		want             inflight.Progress
	}{
		"nothing is committed":              {committed: -1, want: inflight.Behind},
		"up to it":                          {committed: 10, want: inflight.Behind},
		"past it":                           {committed: 11, want: inflight.Past},
		"past it, the topic begins there":   {committed: 11, start: 10, want: inflight.Past},
		"it expired before it was passed":   {committed: 9, start: 11, want: inflight.Unknown},
		"passed since it had expired":       {committed: 11, start: 11, want: inflight.Unknown},
		"an offset was set past it":         {committed: 20, reset: span{5, 20}, want: inflight.Unknown},
		"an offset was set just up to it":   {committed: 11, reset: span{5, 10}, want: inflight.Past},
		"an offset was set from behind it":  {committed: 20, reset: span{11, 20}, want: inflight.Past},
		"an offset was set back to it":      {committed: 10, reset: span{10, 20}, want: inflight.Unknown},
		"another partition's offset is set": {committed: 20, reset: span{0, 0}, want: inflight.Past},
	} {
		g := groupOffsets{at: bounds.Positions{}, reset: map[string]map[int32]span{at.Topic: {3: c.reset, 4: {0, 100}}}}
		if c.committed >= 0 {
			g.at.Set(at.Topic, at.Partition, c.committed)
		}
		starts := bounds.Positions{at.Topic: {3: c.start}}
		if got := g.progressOn(at, starts); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := (groupOffsets{}).progressOn(at, nil); got != inflight.Behind {
		t.Errorf("of a group that was not looked at: %d", got)
	}
}
