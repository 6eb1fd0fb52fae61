package watch

// The looks, one after the other, and who sees what they find.

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// show shows the topic until ctx ends, or a permission is missing.
func (t *tail) show(ctx context.Context, on shower) error {
	ctx, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	defer looks.Wait()
	defer stop()
	views := make(chan *view)
	looks.Go(func() { t.follow(ctx, views) })
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	last := &view{topic: t.of.Topic}
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), cli.ErrInterrupted) {
				return nil
			}
			return context.Cause(ctx)
		case last = <-views:
			if cli.IsA[*redrive.DeniedError](last.problem) {
				return last.problem // waiting cures nothing
			}
		case <-tick.C:
		}
		silent, read, total := t.silence(t.Now())
		if err := on.show(last, silent, read, total); err != nil {
			return err
		}
	}
}

// follow looks at the topic again and again, and sends what it knows.
func (t *tail) follow(ctx context.Context, views chan<- *view) {
	var rest rest
	for {
		t.begin(t.Now())
		problem := t.look(ctx)
		if problem == nil {
			rest.ask(ctx, t)
		}
		t.end()
		now := t.Now()
		v := &view{topic: t.of.Topic, looked: t.looked, problem: problem, retention: rest.retention, guards: rest.guards, run: t.run(now)}
		v.count(&t.letters, now)
		select {
		case views <- v:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return
		}
	}
}

// rest is what is asked less often.
type rest struct {
	asked     time.Time
	guards    []guards.Guard
	retention time.Duration
}

// ask asks for what moves slowly. Where the user may not see it, it stays unknown.
func (r *rest) ask(ctx context.Context, t *tail) {
	if t.Now().Sub(r.asked) < restEvery {
		return
	}
	r.asked = t.Now()
	if configs, err := t.Admin.DescribeTopicConfigs(ctx, t.of.Topic); err == nil {
		text, _ := subject.Setting(configs, t.of.Topic, "retention.ms")
		ms, _ := strconv.ParseInt(text, 10, 64)
		r.retention = time.Duration(max(0, min(ms, int64(mostRetention/time.Millisecond)))) * time.Millisecond
	}
	t.hear(t.Now())
	groups, err := t.Admin.ListGroups(ctx)
	if err != nil {
		return
	}
	t.hear(t.Now())
	if found, err := guards.Read(ctx, t.Admin, groups.Groups(), []string{t.of.Source}); err == nil {
		r.guards = found
	}
}

// mostRetention bounds the retention that is shown.
const mostRetention = 10 * 365 * 24 * time.Hour
