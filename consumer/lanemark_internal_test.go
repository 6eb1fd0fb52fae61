package consumer

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/internal/commitmark"
)

// What a lane says is what health reports of it. Its beginning stays while the state lasts, though
// copies that get through between two looks move that of the trouble.
func TestLaneMark_SaysWhatHealthReports(t *testing.T) {
	refused := func(err error) func(*lane) {
		return func(l *lane) {
			l.abandon, l.log, l.c.log, l.c.ctx = t.Context(), slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler), t.Context()
			writeWith(l.c, func() (*kgo.Client, error) { return nil, err })
			copyLane{l}.initCopies()
			l.copies.Send(forward.NewCopy(&l.source.feed, 10, kgo.Record{Topic: "orders.dlq"}))
		}
	}
	type row struct {
		change func(*lane)
		want   commitmark.LaneState
	}
	each(t, map[string]row{
		"nothing":            {func(*lane) {}, 0},
		"starting":           {func(l *lane) { l.state = laneStarting; refused(kerr.UnknownServerError)(l) }, 0},
		"draining":           {func(l *lane) { l.state = laneDraining; refused(kerr.UnknownServerError)(l) }, 0},
		"a missing topic":    {refused(kerr.UnknownTopicOrPartition), commitmark.Missing},
		"a permission":       {refused(kerr.TopicAuthorizationFailed), commitmark.Denied},
		"another permission": {refused(kerr.ClusterAuthorizationFailed), commitmark.Denied},
		"a broken disk":      {refused(errors.New("no space")), commitmark.Refused},
		"a fetch": {func(l *lane) {
			l.tiers()[0].fetchErrors = fetchErrors{kerr.TopicAuthorizationFailed, time.Now().Add(-time.Hour), time.Now(), 1, time.Now()}
		}, commitmark.Unreadable},
	}, func(t *testing.T, tt row) {
		synctest.Test(t, func(t *testing.T) {
			l := healthy(t)
			l.c.cfg.Version = "2.3.1"
			tt.change(l)
			laneMark{l}.look(time.Now())
			first := l.source.says
			if first.State != tt.want || first.Since.IsZero() != (tt.want == 0) || first.Release != "2.3.1" {
				t.Errorf("it says %+v", first)
			}
			time.Sleep(5 * time.Second)
			l.since = time.Now()
			l.mu.Lock()
			l.copies.Drain()
			l.mu.Unlock()
			if tt.want == commitmark.Unreadable {
				l.tiers()[0].fetchErrors.first = time.Now().Add(-time.Minute)
				laneMark{l}.look(time.Now())
				if l.source.says != first {
					t.Errorf("later it says %+v, before %+v", l.source.says, first)
				}
				l.tiers()[0].fetchErrors = fetchErrors{}
			}
			laneMark{l}.look(time.Now())
			if l.source.says != (commitmark.Lane{Release: "2.3.1"}) {
				t.Errorf("at the end it says %+v", l.source.says)
			}
		})
	})
}
