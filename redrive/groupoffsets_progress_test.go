package redrive

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

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
		g := &groupOffsets{at: bounds.Positions{}, reset: map[string]map[int32]span{at.Topic: {3: c.reset, 4: {0, 100}}}}
		if c.committed >= 0 {
			g.at.Set(at.Topic, at.Partition, c.committed)
		}
		starts := kadm.ListedOffsets{at.Topic: {3: {Topic: at.Topic, Partition: 3, Offset: c.start}}}
		if got := g.progressOn(at, starts); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := (*groupOffsets)(nil).progressOn(at, nil); got != inflight.Behind {
		t.Errorf("of a group that was not looked at: %d", got)
	}
}

// The consumer whose clock is behind the engine's writes a copy again that is not due by it, without an attempt: the letter has moved,
// and would count as one that succeeded once the first copy is passed.
func TestWatch_KnowsTheCopiesThatTheRunWrote(t *testing.T) {
	t.Parallel()
	copyOf := func(run, attempts, hops string, more ...string) (h []kgo.RecordHeader) {
		h = []kgo.RecordHeader{
			{Key: headers.Attempts, Value: []byte(attempts)}, {Key: headers.Hops, Value: []byte(hops)}, {Key: headers.RedriveID, Value: []byte(run)},
		}
		for _, key := range more {
			h = append(h, kgo.RecordHeader{Key: key, Value: []byte("1")})
		}
		return h
	}
	for name, c := range map[string]struct {
		h    []kgo.RecordHeader
		want bool
	}{
		"as it was written":           {copyOf("r1", "0", "1"), true},
		"on a target that was named":  {[]kgo.RecordHeader{{Key: headers.RedriveID, Value: []byte("r1")}}, false},
		"of another run":              {copyOf("r2", "0", "1"), false},
		"it failed":                   {copyOf("r1", "1", "2"), false},
		"it waits again, and has run": {copyOf("r1", "1", "3"), false},
		"it waits again":              {copyOf("r1", "0", "2"), false},
		"it waits behind its key":     {copyOf("r1", "0", "1", headers.Held), false},
	} {
		w := &watch{run: "r1"}
		if got := w.own(c.h); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if w.resumed = true; w.own(c.h) {
			t.Errorf("%s: it is not looked at, though the run was resumed", name)
		}
	}
}
