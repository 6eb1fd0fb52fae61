package consumer

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/consumer/internal/session"
	"github.com/sidingkafka/siding/consumer/internal/topicmonitor"
)

// healthy is a lane with everything that its health depends on.
func healthy(t *testing.T) *lane {
	t.Helper()
	c := &Consumer{topics: topicmonitor.New(nil), membership: session.NewMembership(), laneTable: laneTable{lanes: map[topicPartition]*lane{}}, clock: &clock.Clock{Base: time.Now()}, ready: make(chan struct{})}
	c.recordLog.init(slog.New(slog.DiscardHandler))
	c.cfg.MaxInFlightBytes = 1 << 20
	c.paused.Store(&map[string]bool{})
	l := &lane{c: c, topic: "orders", partition: 3, state: laneRunning, policy: &Policy{HandlerTimeout: time.Minute}, units: map[*unit]struct{}{}, since: time.Now()}
	withFeeds(l)
	l.source.tracker, l.tiers()[0].tracker = offsets.New(10, 10), offsets.New(0, -1)
	c.lanes[topicPartition{"orders", 3}] = l
	return l
}

// Health reports the state of a lane that matters most.
func TestLaneHealth_ReportsTheState(t *testing.T) {
	type change = func(*lane)
	state := func(s laneState) change { return func(l *lane) { l.state = s } }
	park := func(l *lane) {
		l.tiers()[0].parked.Admit(waitingFor(0, time.Now(), time.Now().Add(time.Hour)), time.Now())
	}
	run := func(for_ time.Duration) change {
		return func(l *lane) {
			u := &unit{feed: &l.source.feed}
			a := attemptOn(l.source.origin, nil)
			a.off = 12
			a.in.last.Store(int64(time.Since(l.c.clock.Base) - for_))
			u.current.Store(a.in)
			l.units[u] = struct{}{}
		}
	}
	refuseCopy := func(l *lane) {
		l.abandon, l.log, l.c.log = t.Context(), slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler)
		l.c.ctx = t.Context()
		writeWith(l.c, func() (*kgo.Client, error) { return nil, kerr.TopicAuthorizationFailed })
		copyLane{l}.initCopies()
		l.copies.Send(forward.NewCopy(&l.source.feed, 10, kgo.Record{Topic: "orders.dlq"}))
	}
	starting := func(since time.Duration) change {
		return func(l *lane) { l.state, l.since = laneStarting, time.Now().Add(-since) }
	}
	refused := func(lasted, ago time.Duration) change {
		return func(l *lane) {
			last := time.Now().Add(-ago)
			l.tiers()[0].fetchErrors = fetchErrors{kerr.TopicAuthorizationFailed, last.Add(-lasted), last, 1, last}
		}
	}
	pause := func(l *lane) { l.c.paused.Store(&map[string]bool{"orders": true}) }
	type row struct {
		changes []change
		state   State
		why     string
		ok      bool
	}
	each(t, map[string]row{
		"nothing to do":                     {nil, StateRunning, "", true},
		"starting":                          {[]change{starting(startsWithin)}, StateStarting, "", true},
		"starting for ever":                 {[]change{starting(startsWithin + time.Millisecond)}, StateStarting, "", false},
		"a fetch that was refused once":     {[]change{refused(0, 0)}, StateRunning, "", true},
		"a fetch that is refused":           {[]change{refused(blockedAfter, fetchErrorsFor)}, StateBlocked, "orders.retry.5s/3 cannot be read from offset 0: TOPIC_AUTH", false},
		"a fetch that was refused":          {[]change{refused(blockedAfter, fetchErrorsFor+time.Millisecond)}, StateRunning, "", true},
		"a handler runs":                    {[]change{run(time.Second)}, StateRunning, "", true},
		"a handler at its timeout":          {[]change{run(time.Minute)}, StateRunning, "", true},
		"a handler that ignores it":         {[]change{run(time.Minute + stuckAfter + 2*clock.Tick)}, StateStuck, "orders/3/12", false},
		"between two records of a unit":     {[]change{func(l *lane) { l.units[&unit{feed: &l.source.feed}] = struct{}{} }}, StateRunning, "", true},
		"no timeout: never stuck":           {[]change{func(l *lane) { l.policy.HandlerTimeout = -1 }, run(1000 * time.Hour)}, StateRunning, "", true},
		"halted":                            {[]change{state(laneHalted), func(l *lane) { l.why = "halted on offset 7: x" }}, StateStopped, "halted on offset 7", false},
		"draining":                          {[]change{state(laneDraining)}, StateDraining, "", true},
		"draining hides what is stuck":      {[]change{state(laneDraining), run(time.Hour)}, StateDraining, "", true},
		"parked records":                    {[]change{park}, StateWaiting, "until records are due", true},
		"parked records and one that runs":  {[]change{park, run(0)}, StateRunning, "", true},
		"parked records and one that waits": {[]change{park, func(l *lane) { l.tiers()[0].ready.Push(&item{}) }}, StateRunning, "", true},
		"parked records and queued ones":    {[]change{park, func(l *lane) { l.source.queued = 1 }}, StateRunning, "", true},
		"paused":                            {[]change{pause}, StatePaused, "Pause", true},
		"paused over parked records":        {[]change{pause, park}, StatePaused, "Pause", true},
		"another topic is paused":           {[]change{func(l *lane) { l.c.paused.Store(&map[string]bool{"refunds": true}) }}, StateRunning, "", true},
		"a copy that was refused":           {[]change{refuseCopy}, StateBlocked, "TOPIC_AUTHORIZATION", false},
		"blocked, and paused":               {[]change{pause, refuseCopy}, StateBlocked, "TOPIC_AUTHORIZATION", false},
		"stuck, and blocked":                {[]change{run(time.Hour), refuseCopy}, StateStuck, "timeout", false},
	}, func(t *testing.T, tt row) {
		synctest.Test(t, func(t *testing.T) {
			l := healthy(t)
			time.Sleep(2000 * time.Hour)
			for _, c := range tt.changes {
				c(l)
			}
			h := l.c.Health()
			if len(h.Lanes) != 1 {
				t.Fatalf("health is %+v, want one lane", h)
			}
			if got := h.Lanes[0]; got.State != tt.state || !strings.Contains(got.Why, tt.why) || h.OK != tt.ok {
				t.Errorf("state %q because %q, OK %v; want %q, %q, %v", got.State, got.Why, h.OK, tt.state, tt.why, tt.ok)
			}
			w := httptest.NewRecorder()
			l.c.HealthHandler().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if want := map[bool]int{true: 200, false: 503}[tt.ok]; w.Code != want {
				t.Errorf("status %d, want %d", w.Code, want)
			}
			var back Health
			if err := json.Unmarshal(w.Body.Bytes(), &back); err != nil || back.OK != h.OK || len(back.Lanes) != 1 || back.Lanes[0].State != tt.state {
				t.Errorf("served %s: %v", w.Body, err)
			}
		})
	})
}

// Health counts the records of a lane, and has no lane that is gone.
func TestLaneHealth_CountsAndForgets(t *testing.T) {
	t.Parallel()
	l := healthy(t)
	c := l.c
	if c.Health().Started {
		t.Error("started before the first assignment")
	}
	close(c.ready)
	f := l.source
	f.tracker.DeliverRange(10, 14)
	f.tracker.FinishRange(10, 11)
	f.queued = 2
	l.tiers()[0].parked.Admit(waitingFor(0, time.Now(), time.Now().Add(time.Hour)), time.Now())
	h := c.Health()
	want := []FeedOffsets{
		{Topic: "orders", Committed: 10, Floor: 12, Next: 15, Pending: 3},
		{Topic: "orders.retry.5s", Committed: -1},
	}
	if got := h.Lanes[0]; !h.Started || got.Queued != 2 || got.Parked != 1 || !reflect.DeepEqual(got.Offsets, want) {
		t.Errorf("health is %+v, want two queued, one parked and offsets %+v", h, want)
	}
	for _, p := range []int32{9, 1} {
		other := &lane{c: c, topic: "orders", partition: p, policy: l.policy, state: laneRunning}
		c.lanes[topicPartition{"orders", p}] = withFeeds(other)
	}
	early := &lane{c: c, topic: "a", partition: 99, policy: l.policy, state: laneRunning}
	c.lanes[topicPartition{"a", 99}] = withFeeds(early)
	var order []string
	for _, lh := range c.Health().Lanes {
		order = append(order, fmt.Sprint(lh.Topic, lh.Partition))
	}
	if got, want := strings.Join(order, " "), "a99 orders1 orders3 orders9"; got != want {
		t.Errorf("lanes come as %s, want %s", got, want)
	}
	l.state = laneGone
	if n := len(c.Health().Lanes); n != 3 {
		t.Errorf("%d lanes after one is gone, want 3", n)
	}
}
