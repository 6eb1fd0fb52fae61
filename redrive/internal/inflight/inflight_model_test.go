package inflight

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// modelled is what a naive model knows of a letter: all of it, by itself.
type modelled struct {
	sent, resolved bool
	line           QueueKey
	offset         int64 // on the line
	hops           int
	class          string
	dead           bool
	discarded      bool
	state          dlq.State
}

// A letter has the outcome that one with a book of its own would have, in whatever order its
// sending, its copies, what the consumer says and the group's offsets come to be known.
func TestLetters_AgreeWithAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const (
			total             = 12
			tier, retry, dead = "orders.retry.5s", "orders.retry.1m", "orders.dlq"
		)
		f := New(Counts{}, nil, nil)
		model := map[letters.Place]*modelled{}
		ends := map[string]int64{}      // of topics
		committed := map[string]int64{} // of the group
		for i := range int64(total) {
			model[letters.At(0, i)] = &modelled{}
		}
		next := func(topic string) int64 { ends[topic]++; return ends[topic] - 1 }
		written := map[letters.Place]int64{} // copies that the sender does not know of yet
		var sum FirstOutcomes
		passed := func(_ string, at headers.Position) Progress {
			if committed[at.Topic] > at.Offset {
				return Past
			}
			return Behind
		}
		judge := func() (j FirstOutcomes) {
			j = f.FirstOutcomes(time.Time{})
			sum.Letters, sum.Failed = sum.Letters+j.Letters, sum.Failed+j.Failed
			return sum
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				at := letters.At(0, rapid.Int64Range(0, total-1).Draw(t, "letter"))
				if _, ok := written[at]; ok || model[at].sent {
					t.Skip("another letter: this one is written")
				}
				written[at] = next(tier)
			},
			"answer": func(t *rapid.T) {
				var all []Sent
				for at, offset := range written {
					if rapid.Bool().Draw(t, "now") {
						continue
					}
					delete(written, at)
					m := model[at]
					m.sent = true
					if m.line.Topic == "" {
						m.line, m.offset, m.hops = QueueKey{"g", tier, 0}, offset, 1
					}
					all = append(all, Sent{at, QueueKey{"g", tier, 0}, offset})
				}
				f.Sent(all, nil)
			},
			"fail": func(t *rapid.T) {
				at := letters.At(0, rapid.Int64Range(0, total-1).Draw(t, "letter"))
				m := model[at]
				if _, ok := written[at]; !ok && !m.sent || m.resolved || m.dead || m.discarded {
					t.Skip("another letter: this one is not sent, or has its end")
				}
				m.hops, m.class = max(m.hops, 1)+1, "tax"
				m.dead = rapid.Bool().Draw(t, "dead")
				topic := retry
				if m.dead {
					topic = dead
				}
				m.line, m.offset = QueueKey{"g", topic, 0}, next(topic)
				f.OnCopy(ObservedCopy{Letter: at, At: headers.Position{Topic: topic, Offset: m.offset}, Group: "g", Hops: m.hops, Class: m.class, Dead: m.dead})
			},
			"discard": func(t *rapid.T) {
				at := letters.At(0, rapid.Int64Range(0, total-1).Draw(t, "letter"))
				m := model[at]
				if !m.sent || m.resolved || m.dead {
					t.Skip("another letter: this one is not sent, or has its end")
				}
				m.discarded = true
				f.Discard(at, true)
			},
			"commit": func(t *rapid.T) {
				topic := rapid.SampledFrom([]string{tier, retry}).Draw(t, "topic")
				committed[topic] = rapid.Int64Range(committed[topic], ends[topic]).Draw(t, "offset")
			},
			"look": func(*rapid.T) {
				want := map[letters.Place]dlq.State{}
				for at, m := range model {
					switch {
					case !m.sent || m.resolved:
						continue
					case m.dead:
						m.state = dlq.Failed
					case committed[m.line.Topic] <= m.offset:
						continue
					case m.discarded:
						m.state = dlq.Discarded
					default:
						m.state = dlq.Succeeded
					}
					m.resolved = true
					want[at] = m.state
				}
				before := sum
				for _, v := range f.Resolve(passed) {
					if want[v.Letter] != v.Entry.State {
						t.Fatalf("letter %d: %s, want %q", v.Letter.Offset, v.Entry.State, want[v.Letter])
					}
					if m := model[v.Letter]; v.Entry.Target.Topic != m.line.Topic || v.Entry.Target.Offset != m.offset {
						t.Fatalf("letter %d is at %v, want %v/%d", v.Letter.Offset, v.Entry.Target, m.line, m.offset)
					}
					delete(want, v.Letter)
				}
				if len(want) > 0 {
					t.Fatalf("not resolved: %v", want)
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
				if got := judge(); got.Letters > tried || got.Failed > failed || got.Failed < before.Failed {
					t.Fatalf("%+v had a first outcome, and before %+v; of %d letters %d failed", got, before, tried, failed)
				}
			},
			"": func(t *rapid.T) {
				var want Counts
				for _, m := range model {
					switch {
					case !m.sent:
						continue
					case !m.resolved:
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
				got := f.Counts()
				if got.Sent != want.Sent || got.Pending != want.Pending || got.Retrying != want.Retrying || got.Succeeded != want.Succeeded ||
					got.Failed != want.Failed || got.Discarded != want.Discarded {
					t.Fatalf("counts %+v, want %+v", got, want)
				}
			},
		})
		// What had an outcome at first: each letter that was sent counts once, as failed where it
		// ever was.
		var all []Sent
		want := FirstOutcomes{}
		for at, m := range model {
			if offset, ok := written[at]; ok {
				all = append(all, Sent{at, QueueKey{"g", tier, 0}, offset})
				m.sent = true
			}
			if m.sent {
				want.Letters++
			}
			if m.sent && m.class != "" {
				want.Failed++
			}
		}
		f.Sent(all, nil)
		maps.Copy(committed, ends)
		f.Resolve(passed)
		if got := judge(); got != want {
			t.Fatalf("first outcomes: %+v, want %+v", got, want)
		}
	})
}
