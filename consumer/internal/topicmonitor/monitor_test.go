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

// owner has one topic, of which a test says what the brokers have, and notes what it is told.
type owner struct {
	kind Kind
	mu   sync.Mutex
	now  cluster.Topic
	told []string
}

func (o *owner) Uses() map[string]Use { return map[string]Use{"orders": {o.kind, "orders"}} }

func (o *owner) Describe(context.Context, []string) (map[string]cluster.Topic, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return map[string]cluster.Topic{"orders": o.now}, nil
}

// set has the brokers have another topic.
func (o *owner) set(now cluster.Topic) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = now
}

func (o *owner) PollFailed(error)    { o.told = append(o.told, "failed") }
func (o *owner) Sized(*Topic, int32) {}
func (o *owner) Missing(*Topic)      { o.told = append(o.told, "missing") }
func (o *owner) Found(*Topic)        { o.told = append(o.told, "found") }
func (o *owner) Recreated(*Topic)    { o.told = append(o.told, "recreated") }
func (o *owner) Reread(*Topic)       { o.told = append(o.told, "reread") }

// Each change is reported once, however often it is polled; a drained tier, which is forgotten for
// good, has to be missing for longer.
func TestMonitor_ReportsEachChangeOnce(t *testing.T) {
	t.Parallel()
	var (
		first  = cluster.Topic{ID: kadm.TopicID{1}, Partitions: 1}
		second = cluster.Topic{ID: kadm.TopicID{2}, Partitions: 1}
		none   = cluster.Topic{Err: kerr.UnknownTopicOrPartition}
	)
	for name, tt := range map[string]struct {
		kind    Kind
		now     []cluster.Topic // each for 20 s
		suspect bool            // before the last
		want    []string
	}{
		"it stays":                    {now: []cluster.Topic{first, first}},
		"recreated":                   {now: []cluster.Topic{first, second}, want: []string{"recreated"}},
		"a broker lags behind":        {now: []cluster.Topic{first, second, first}, want: []string{"recreated"}},
		"missing, and back":           {now: []cluster.Topic{first, none, none, first}, want: []string{"missing", "found"}},
		"a drained tier for a moment": {kind: Drained, now: []cluster.Topic{first, none, first}, want: []string{"found"}},
		"a drained tier is gone":      {kind: Drained, now: []cluster.Topic{first, none, none}, want: []string{"missing"}},
		"a client has another id":     {now: []cluster.Topic{first, first}, suspect: true, want: []string{"reread"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := &owner{kind: tt.kind, now: tt.now[0]}
				m := New(o)
				ctx, end := context.WithCancel(t.Context())
				go m.Loop(ctx)
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
				if !slices.Equal(o.told, tt.want) {
					t.Errorf("told %v, want %v", o.told, tt.want)
				}
			})
		})
	}
}
