package main

import (
	"strings"
	"testing"
	"time"
)

func TestEachFaultIsCounted(t *testing.T) {
	t.Parallel()
	type world struct {
		journal map[string]entry
		found   found
	}
	// One order was handled at its second attempt, one was dead-lettered at its first.
	sound := func() world {
		now := time.Now()
		return world{
			map[string]entry{
				"a": {healthy: true, at: now, produced: true, runs: 2, handled: 1, latency: time.Millisecond},
				"b": {at: now, produced: true, runs: 1},
			},
			found{
				source: map[string]bool{"a": true, "b": true}, parked: map[string]int{"a": 1}, waiting: map[string]bool{},
				dead: map[string][]letter{"b": {{class: "decode", attempts: 1, intact: true}}},
			},
		}
	}
	edit := func(w *world, id string, f func(*entry)) {
		e := w.journal[id]
		f(&e)
		w.journal[id] = e
	}
	for name, test := range map[string]struct {
		do    func(*world)
		check func(*tally) bool // the number that shows the fault
		says  string
		sound bool
	}{
		"nothing": {
			func(*world) {}, func(t *tally) bool {
				return t.Produced == 2 && t.Handled == 1 && t.Retried == 1 && t.DeadLettered == 1 && t.ByClass["decode"] == 1
			}, "", true,
		},
		"never produced": {
			func(w *world) { w.journal["c"] = entry{at: time.Now()} },
			func(t *tally) bool { return t.Produced == 2 }, "", true,
		},
		"written, though the producer did not learn of it, and lost": {
			func(w *world) { w.journal["c"], w.found.source["c"] = entry{at: time.Now()}, true },
			func(t *tally) bool { return t.Produced == 3 && t.Lost == 1 }, "c: lost", false,
		},
		"lost": {
			func(w *world) { delete(w.found.dead, "b") },
			func(t *tally) bool { return t.Lost == 1 && t.DeadLettered == 0 }, "b: lost", false,
		},
		"waiting at the end": {
			func(w *world) { delete(w.found.dead, "b"); w.found.waiting["b"] = true },
			func(t *tally) bool { return t.Waiting == 1 && t.Lost == 0 }, "", false,
		},
		"acknowledged and not written": {
			func(w *world) { delete(w.found.source, "a") },
			func(t *tally) bool { return t.Produced == 2 }, "a: acknowledged", false,
		},
		"handled twice": {
			func(w *world) { edit(w, "a", func(e *entry) { e.handled = 2 }) },
			func(t *tally) bool { return t.Duplicated == 1 && t.Handled == 1 }, "a: handled 2 times", false,
		},
		"handled and dead-lettered": {
			func(w *world) { w.found.dead["a"] = w.found.dead["b"] },
			func(t *tally) bool { return t.Duplicated == 1 }, "a: handled 1 times and dead-lettered 1", false,
		},
		"two dead letters": {
			func(w *world) { w.found.dead["b"] = append(w.found.dead["b"], w.found.dead["b"][0]) },
			func(t *tally) bool { return t.Duplicated == 1 && t.DeadLettered == 1 }, "b: handled 0 times and dead-lettered 2", false,
		},
		"early": {
			func(w *world) { edit(w, "a", func(e *entry) { e.early = 1 }) },
			func(t *tally) bool { return t.Early == 1 }, "a: ran 1 times before", false,
		},
		"a retry without a copy": {
			func(w *world) { delete(w.found.parked, "a") },
			func(t *tally) bool { return t.Handled == 1 }, "a: 0 copies", false,
		},
		"a changed value": {
			func(w *world) { w.found.dead["b"][0].intact = false },
			func(t *tally) bool { return t.DeadLettered == 1 }, "b: its dead letter", false,
		},
		"a stranger's dead letter": {
			func(w *world) { w.found.dead["x"] = w.found.dead["b"] },
			func(t *tally) bool { return t.DeadLettered == 1 }, `of "x"`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sound()
			test.do(&w)
			got := count(w.journal, w.found)
			var out strings.Builder
			got.print(&out)
			if !test.check(got) || got.sound() != test.sound || !strings.Contains(out.String(), test.says) {
				t.Errorf("sound %t, want %t, and %q said:\n%s", got.sound(), test.sound, test.says, out.String())
			}
		})
	}
}
