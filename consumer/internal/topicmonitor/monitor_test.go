package topicmonitor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// owner has one topic, of which a test says what the brokers have, and keeps the calls of the
// monitor.
type owner struct {
	kind  Kind
	mu    sync.Mutex
	now   cluster.Topic
	calls []string
	err   error  // of Describe
	last  *Topic // that was sized
}

func (o *owner) Uses() map[string]Use {
	return map[string]Use{"orders": {Kind: o.kind, Source: "orders"}}
}

func (o *owner) Describe(context.Context, []string) (map[string]cluster.Topic, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		o.calls = append(o.calls, "failed")
	}
	return map[string]cluster.Topic{"orders": o.now}, o.err
}

// set has the brokers have another topic.
func (o *owner) set(now cluster.Topic) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = now
}

func (o *owner) Missing(*Topic)   { o.add("missing") }
func (o *owner) Found(*Topic)     { o.add("found") }
func (o *owner) Recreated(*Topic) { o.add("recreated") }
func (o *owner) Reread(*Topic)    { o.add("reread") }

func (o *owner) Sized(t *Topic, _ int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = t
}

func (o *owner) add(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, what)
}

// takeCalls returns the monitor's calls since the last one of takeCalls.
func (o *owner) takeCalls() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	calls := o.calls
	o.calls = nil
	return calls
}

// revoking registers that the topic's lanes are being revoked.
func (o *owner) revoking(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last.Revoking.Store(on)
}

// fail makes the polls fail, or not.
func (o *owner) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// Each change is reported once, however often it is polled; a drained tier, which is forgotten for
// good, has to be missing for longer.
func TestMonitor_ReportsEachChangeOnce(t *testing.T) {
	t.Parallel()
	other := cluster.Topic{ID: kadm.TopicID{2}, Partitions: 1}
	for name, tt := range map[string]struct {
		kind    Kind
		now     []cluster.Topic // each for 20 s
		suspect bool            // before the last
		want    []string
	}{
		"it stays":                    {now: []cluster.Topic{found, found}},
		"recreated":                   {now: []cluster.Topic{found, other}, want: []string{"recreated"}},
		"a broker lags behind":        {now: []cluster.Topic{found, other, found}, want: []string{"recreated"}},
		"missing, and back":           {now: []cluster.Topic{found, absent, absent, found}, want: []string{"missing", "found"}},
		"a drained tier for a moment": {kind: Drained, now: []cluster.Topic{found, absent, found}, want: []string{"found"}},
		"a drained tier is gone":      {kind: Drained, now: []cluster.Topic{found, absent, absent}, want: []string{"missing"}},
		"a client has another id":     {now: []cluster.Topic{found, found}, suspect: true, want: []string{"reread"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := &owner{kind: tt.kind, now: tt.now[0]}
				m := New(o)
				ctx, end := context.WithCancel(t.Context())
				go m.Loop(ctx, 0)
				for i, now := range tt.now {
					synctest.Wait()
					o.set(now)
					if tt.suspect && i == len(tt.now)-1 {
						m.Suspect("orders", kerr.UnknownTopicID)
						m.Suspect("orders", errors.New("another error"))
					}
					time.Sleep(20 * time.Second)
				}
				synctest.Wait()
				if missing := len(m.Absent()) > 0; missing {
					t.Errorf("%v are missing at the end", m.Absent())
				}
				end()
				synctest.Wait()
				if got := o.takeCalls(); !slices.Equal(got, tt.want) {
					t.Errorf("called %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// watched is a monitor of an owner whose topic was found, and steps in which both are used.
func watched(t *testing.T, steps func(o *owner, m *Monitor, wants func(...string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &owner{now: found}
		m := New(o)
		ctx, end := context.WithCancel(t.Context())
		go m.Loop(ctx, 0)
		time.Sleep(20 * time.Second)
		steps(o, m, func(want ...string) {
			t.Helper()
			synctest.Wait()
			if got := o.takeCalls(); !slices.Equal(got, want) {
				t.Errorf("called %v, want %v", got, want)
			}
		})
		end()
		synctest.Wait()
	})
}

var (
	found  = cluster.Topic{ID: kadm.TopicID{1}, Partitions: 1}
	absent = cluster.Topic{Err: kerr.UnknownTopicOrPartition}
)

// A topic may be paused for a suspicion about its id, so the suspicion lasts until it is resolved.
func TestMonitor_KeepsASuspicionUntilItIsResolved(t *testing.T) {
	t.Parallel()
	hidden := cluster.Topic{Err: kerr.TopicAuthorizationFailed}
	for name, until := range map[string]struct{ begin, end func(*owner) }{
		"it may not be described": {func(o *owner) { o.set(hidden) }, func(o *owner) { o.set(found) }},
		"its lanes are revoked":   {func(o *owner) { o.revoking(true) }, func(o *owner) { o.revoking(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watched(t, func(o *owner, m *Monitor, wants func(...string)) {
				until.begin(o)
				m.Suspect("orders", kerr.UnknownTopicID)
				m.Suspect("orders", kerr.UnknownTopicOrPartition) // takes nothing back
				time.Sleep(20 * time.Second)
				wants()
				until.end(o)
				time.Sleep(time.Second)
				wants("reread")
				// the clients forget it no sooner than clearEvery
				m.Suspect("orders", kerr.InconsistentTopicID)
				time.Sleep(clearEvery - 2*time.Second)
				wants()
				time.Sleep(3 * time.Second)
				wants("reread")
			})
		})
	}
}

func TestMonitor_IgnoresWhatIsNoChange(t *testing.T) {
	t.Parallel()
	watched(t, func(o *owner, m *Monitor, wants func(...string)) {
		m.Suspect("orders", errors.New("another error"))
		m.Suspect("orders", kerr.UnknownTopicOrPartition)
		time.Sleep(20 * time.Second)
		wants()
		o.set(absent) // a broker that learns of it late
		time.Sleep(pollSoon)
		o.set(found)
		time.Sleep(20 * time.Second)
		wants()
		o.set(cluster.Topic{Partitions: 1}) // a broker without ids
		time.Sleep(20 * time.Second)
		wants()
	})
}

func TestMonitor_ListsWhatIsMissing(t *testing.T) {
	t.Parallel()
	watched(t, func(o *owner, m *Monitor, wants func(...string)) {
		o.set(absent)
		m.Suspect("orders", kerr.UnknownTopicOrPartition)
		time.Sleep((missedPolls + 1) * pollSoon)
		wants("missing")
		if got := m.Absent(); !slices.Equal(got, []string{"orders"}) {
			t.Errorf("%v are missing", got)
		}
		o.set(found)
		time.Sleep(20 * time.Second)
		wants("found")
	})
}

func TestMonitor_ReportsAFailedPoll(t *testing.T) {
	t.Parallel()
	watched(t, func(o *owner, m *Monitor, wants func(...string)) {
		o.fail(errors.New("no broker"))
		time.Sleep(pollEvery + pollSoon)
		wants("failed")
		o.fail(nil)
	})
}
