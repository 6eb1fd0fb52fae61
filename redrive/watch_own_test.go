package redrive

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// A consumer whose clock is behind the engine's writes a copy again that is not due yet, without an
// attempt. The letter has moved, but would count as succeeded once the first copy is passed.
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
