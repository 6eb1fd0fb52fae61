package session

import (
	"slices"
	"testing"
)

func TestSubscription_RenewsARecreatedSource(t *testing.T) {
	t.Parallel()
	orders := func(p ...int32) map[string][]int32 { return map[string][]int32{"orders": p} }
	for name, c := range map[string]struct {
		before, meanwhile func(*Subscription)
		now               bool
		after             []func(*Subscription) []string // what each session subscribes to again
		want              [][]string
	}{
		"none was held": {now: true},
		"given back, then a session": {
			before: func(s *Subscription) { s.Begin(orders(0, 1)) },
			after: []func(*Subscription) []string{func(s *Subscription) []string {
				s.End(orders(0, 1))
				_, again := s.Begin(nil)
				return again
			}, func(s *Subscription) []string { _, again := s.Begin(orders(0, 1)); return again }},
			want: [][]string{{"orders"}, nil},
		},
		"a session that was joined before gives more of it": {
			before: func(s *Subscription) { s.Begin(orders(0)) },
			after: []func(*Subscription) []string{func(s *Subscription) []string { _, again := s.Begin(orders(1)); return again }, func(s *Subscription) []string {
				s.End(orders(0, 1))
				_, again := s.Begin(nil)
				return again
			}},
			want: [][]string{nil, {"orders"}},
		},
		"given back while the client forgets it, and no session since": {
			before:    func(s *Subscription) { s.Begin(orders(0)) },
			meanwhile: func(s *Subscription) { s.End(orders(0)) },
			after:     []func(*Subscription) []string{func(s *Subscription) []string { _, again := s.Begin(nil); return again }},
			want:      [][]string{{"orders"}},
		},
		"given back while the client forgets it, and the session began": {
			before:    func(s *Subscription) { s.Begin(orders(0)) },
			meanwhile: func(s *Subscription) { s.End(orders(0)); s.Begin(nil) },
			now:       true,
		},
		"other topics say nothing": {
			before: func(s *Subscription) { s.Begin(map[string][]int32{"bills": {0}}) },
			now:    true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewSubscription()
			if c.before != nil {
				c.before(s)
			}
			now := s.Leave("orders", func() {
				if c.meanwhile != nil {
					c.meanwhile(s)
				}
			})
			if now != c.now {
				t.Errorf("to subscribe at once: got %v, want %v", now, c.now)
			}
			for i, session := range c.after {
				if got := session(s); !slices.Equal(got, c.want[i]) {
					t.Errorf("session %d subscribes to %v, want %v", i, got, c.want[i])
				}
			}
		})
	}
}

func TestSubscription_OnlyGainedPartitionsAreNew(t *testing.T) {
	t.Parallel()
	s := NewSubscription()
	if fresh, _ := s.Begin(map[string][]int32{"orders": {0, 1, 1}}); !slices.Equal(fresh["orders"], []int32{0, 1}) {
		t.Errorf("got %v", fresh)
	}
	if fresh, _ := s.Begin(map[string][]int32{"orders": {0, 1, 2}}); !slices.Equal(fresh["orders"], []int32{2}) {
		t.Errorf("of three, two of which it has, got %v", fresh)
	}
	s.End(map[string][]int32{"orders": {1}})
	if fresh, _ := s.Begin(map[string][]int32{"orders": {0, 1, 2}}); !slices.Equal(fresh["orders"], []int32{1}) {
		t.Errorf("after one was taken back, got %v", fresh)
	}
}
