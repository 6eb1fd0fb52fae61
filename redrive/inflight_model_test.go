package redrive

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// modelled is what a naive model knows of a letter: all of it, by itself.
type modelled struct {
	sent, settled bool
	line          queueKey
	offset        int64 // on the line
	hops          int
	class         string
	dead          bool
	discarded     bool
	state         dlq.State
}

// A letter has the outcome that one with a book of its own would have, in whatever order its sending, its copies, what the consumer says
// and the group's offsets come to be known.
func TestFlightsAreWhatABookForEachLetterWouldSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const (
			letters           = 12
			tier, retry, dead = "orders.retry.5s", "orders.retry.1m", "orders.dlq"
		)
		f := newInFlight(Counts{}, nil)
		model := map[place]*modelled{}
		ends := map[string]int64{}      // of topics
		committed := map[string]int64{} // of the group
		for i := range int64(letters) {
			model[place{0, i}] = &modelled{}
		}
		next := func(topic string) int64 { ends[topic]++; return ends[topic] - 1 }
		written := map[place]int64{} // copies that the sender does not know of yet
		var sum judged
		passed := func(_ string, at headers.Position) progress {
			if committed[at.Topic] > at.Offset {
				return progressPast
			}
			return progressBehind
		}
		judge := func() (j judged) {
			j = f.judge()
			sum.letters, sum.failed = sum.letters+j.letters, sum.failed+j.failed
			return sum
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				at := place{0, rapid.Int64Range(0, letters-1).Draw(t, "letter")}
				if _, ok := written[at]; ok || model[at].sent {
					t.Skip("another letter: this one is written")
				}
				written[at] = next(tier)
			},
			"answer": func(t *rapid.T) {
				var all []sentLetter
				for at, offset := range written {
					if rapid.Bool().Draw(t, "now") {
						continue
					}
					delete(written, at)
					m := model[at]
					m.sent = true
					if m.line.topic == "" {
						m.line, m.offset, m.hops = queueKey{"g", tier, 0}, offset, 1
					}
					all = append(all, sentLetter{at, queueKey{"g", tier, 0}, offset})
				}
				f.sent(slices.Values(all))
			},
			"fail": func(t *rapid.T) {
				at := place{0, rapid.Int64Range(0, letters-1).Draw(t, "letter")}
				m := model[at]
				if _, ok := written[at]; !ok && !m.sent || m.settled || m.dead || m.discarded {
					t.Skip("another letter: this one is not sent, or has its end")
				}
				m.hops, m.class = max(m.hops, 1)+1, "tax"
				m.dead = rapid.Bool().Draw(t, "dead")
				topic := retry
				if m.dead {
					topic = dead
				}
				m.line, m.offset = queueKey{"g", topic, 0}, next(topic)
				f.onCopy(observedCopy{letter: at, at: headers.Position{Topic: topic, Offset: m.offset}, group: "g", hops: m.hops, class: m.class, dead: m.dead})
			},
			"discard": func(t *rapid.T) {
				at := place{0, rapid.Int64Range(0, letters-1).Draw(t, "letter")}
				m := model[at]
				if !m.sent || m.settled || m.dead {
					t.Skip("another letter: this one is not sent, or has its end")
				}
				m.discarded = true
				f.discard(at)
			},
			"commit": func(t *rapid.T) {
				topic := rapid.SampledFrom([]string{tier, retry}).Draw(t, "topic")
				committed[topic] = rapid.Int64Range(committed[topic], ends[topic]).Draw(t, "offset")
			},
			"look": func(*rapid.T) {
				want := map[place]dlq.State{}
				for at, m := range model {
					switch {
					case !m.sent || m.settled:
						continue
					case m.dead:
						m.state = dlq.Failed
					case committed[m.line.topic] <= m.offset:
						continue
					case m.discarded:
						m.state = dlq.Discarded
					default:
						m.state = dlq.Succeeded
					}
					m.settled = true
					want[at] = m.state
				}
				before := sum
				for _, v := range f.resolve(passed) {
					if want[v.letter] != v.entry.State {
						t.Fatalf("letter %d: %s, want %q", v.letter.offset, v.entry.State, want[v.letter])
					}
					if m := model[v.letter]; v.entry.Target.Topic != m.line.topic || v.entry.Target.Offset != m.offset {
						t.Fatalf("letter %d is at %v, want %v/%d", v.letter.offset, v.entry.Target, m.line, m.offset)
					}
					delete(want, v.letter)
				}
				if len(want) > 0 {
					t.Fatalf("not settled: %v", want)
				}
				tried, failed := 0, 0
				for _, m := range model {
					if m.sent {
						tried++
					}
					if m.class != "" {
						failed++
					}
				}
				if got := judge(); got.letters > tried || got.failed > failed || got.failed < before.failed {
					t.Fatalf("%+v had a first outcome, and before %+v; of %d letters %d failed", got, before, tried, failed)
				}
			},
			"": func(t *rapid.T) {
				var want Counts
				for _, m := range model {
					switch {
					case !m.sent:
						continue
					case !m.settled:
						want.Pending++
						if m.class != "" && !m.dead {
							want.Retrying++
						}
					case m.state == dlq.Succeeded:
						want.Succeeded++
					case m.state == dlq.Failed:
						want.Failed++
					case m.state == dlq.Discarded:
						want.Discarded++
					}
					want.Sent++
				}
				got := f.countsNow()
				if got.Sent != want.Sent || got.Pending != want.Pending || got.Retrying != want.Retrying || got.Succeeded != want.Succeeded ||
					got.Failed != want.Failed || got.Discarded != want.Discarded {
					t.Fatalf("counts %+v, want %+v", got, want)
				}
			},
		})
		// What had an outcome at first: each letter that was sent counts once, as failed where it ever was.
		var all []sentLetter
		want := judged{}
		for at, m := range model {
			if offset, ok := written[at]; ok {
				all = append(all, sentLetter{at, queueKey{"g", tier, 0}, offset})
				m.sent = true
			}
			if m.sent {
				want.letters++
			}
			if m.sent && m.class != "" {
				want.failed++
			}
		}
		f.sent(slices.Values(all))
		maps.Copy(committed, ends)
		f.resolve(passed)
		if got := judge(); got != want {
			t.Fatalf("first outcomes: %+v, want %+v", got, want)
		}
	})
}
