package serve

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/book"
	"github.com/sidingkafka/siding/serve/internal/console"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// consoleData is what the console shows of a server. Where the API has an answer, the console gets
// the API's.
type consoleData struct{ s *Server }

var _ console.Data = consoleData{}

// by returns the context in which the API's handlers answer somebody.
func by(ctx context.Context, who *access.Identity) context.Context {
	return access.With(ctx, who)
}

func (d consoleData) Enter(w http.ResponseWriter, r *http.Request, who *access.Identity, length access.Length) (context.Context, func(), error) {
	return d.s.enter(w, r, who, length)
}

func (d consoleData) Hide(text string) string { return outside(d.s.redact, text) }

func (d consoleData) Roles(who *access.Identity) map[string]access.Role {
	all := map[string]access.Role{}
	for name := range d.s.all() {
		if role := who.On(name); role >= access.Viewer {
			all[name] = role
		}
	}
	return all
}

func (d consoleData) Topics(_ context.Context, who *access.Identity) (all []console.Topic) {
	for name, t := range d.s.all() {
		if role := who.On(name); role >= access.Viewer {
			all = append(all, d.topic(t, role))
		}
	}
	return all
}

func (d consoleData) Topic(ctx context.Context, who *access.Identity, name string) (*console.Topic, error) {
	t, err := d.s.topicFor(by(ctx, who), name, access.Viewer)
	if err != nil {
		return nil, err
	}
	is := d.topic(t, who.On(name))
	return &is, nil
}

func (d consoleData) topic(t *topic, role access.Role) console.Topic {
	now := time.Now()
	is := console.Topic{Topic: d.s.summary(t), Role: role, Silent: !t.silentSince(d.s.pulse).IsZero()}
	f, limits := t.figures(now, d.s.ruleList()), t.config.thresholds()
	for _, kind := range alertKinds {
		if a := kind.due(&f, limits, now); a != nil {
			is.Alerts = append(is.Alerts, *a)
		}
	}
	t.mu.Lock()
	is.Retention, is.Runs = t.retention, append([]redrive.Outcome(nil), t.runs...)
	t.mu.Unlock()
	for i := range is.Runs { // what people wrote about a run, and errors, may quote letters
		r := &is.Runs[i]
		r.Why, r.Cause, r.Waiting = d.s.redact.Text(r.Why), outside(d.s.redact, r.Cause), outside(d.s.redact, r.Waiting)
	}
	return is
}

func filterOf(f *console.Filter) api.Filter {
	return api.Filter{Class: f.Classes, Fingerprint: f.Fingerprints, Group: f.Groups, Reason: f.Reasons, State: f.States(), Where: f.Where, Since: f.Since, Until: f.Until}
}

func (d consoleData) Groups(ctx context.Context, who *access.Identity, topic string, f *console.Filter) ([]api.Group, error) {
	return d.s.listGroups(by(ctx, who), &request.Groups{Topic: request.Topic{Topic: topic}, Filter: filterOf(f)})
}

func (d consoleData) Letters(ctx context.Context, who *access.Identity, topic string, f *console.Filter, n int) (*api.Letters, error) {
	page, err := d.s.listLetters(by(ctx, who), &request.Letters{Topic: request.Topic{Topic: topic}, Filter: filterOf(f), Cursor: f.Cursor, Limit: n})
	if err != nil {
		return nil, err
	}
	return &page, nil
}

func (d consoleData) Letter(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64) (*api.LetterDetail, error) {
	letter, err := d.s.getLetter(by(ctx, who), &request.Letter{Topic: request.Topic{Topic: topic}, Partition: partition, Offset: offset})
	if err != nil {
		return nil, err
	}
	return &letter, nil
}

func (d consoleData) Times(ctx context.Context, who *access.Identity, topic string, f *console.Filter, from time.Time, length time.Duration, n, most int) ([]book.Series, error) {
	filter := filterOf(f)
	t, sel, err := d.s.choose(by(ctx, who), topic, &filter, access.Viewer)
	if err != nil {
		return nil, err
	}
	return t.book.Times(&sel.Filter, from, length, n, most), nil
}

func (d consoleData) Acts(ctx context.Context, who *access.Identity, topic string) ([]book.Act, error) {
	t, err := d.s.topicFor(by(ctx, who), topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	acts := t.book.Acts()
	for i := range acts {
		acts[i].Why = d.s.redact.Text(acts[i].Why)
	}
	return acts, nil
}

func (d consoleData) Prunes(ctx context.Context, who *access.Identity, topic string) ([]dlq.PruneRecord, error) {
	t, err := d.s.topicFor(by(ctx, who), topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	all := t.book.Prunes()
	for i := range all {
		p := &all[i]
		p.Why, p.Archive, p.Error = d.s.redact.Text(p.Why), outside(d.s.redact, p.Archive), outside(d.s.redact, p.Error)
	}
	return all, nil
}

func (d consoleData) RuleActs(ctx context.Context, who *access.Identity, topic string) (all []console.RuleAct, err error) {
	t, err := d.s.topicFor(by(ctx, who), topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	for _, name := range t.decidedRules() {
		for _, is := range t.decisions(name) {
			if is.Do == doPause || is.Do == doResume {
				all = append(all, console.RuleAct{Rule: name, Paused: is.Do == doPause, By: is.By, Why: d.s.redact.Text(is.Why), At: is.At})
			}
		}
	}
	return all, nil
}

func (d consoleData) Runs(ctx context.Context, who *access.Identity) ([]api.Run, error) {
	return d.s.listAllRuns(by(ctx, who), &request.Newest{})
}

func (d consoleData) Run(ctx context.Context, who *access.Identity, topic, id string) (*api.Run, error) {
	run, err := d.s.getRun(by(ctx, who), &request.Run{Topic: request.Topic{Topic: topic}, Run: id})
	if err != nil {
		return nil, problemOf(err)
	}
	return &run, nil
}

func (d consoleData) Count(ctx context.Context, who *access.Identity, topic string, f *api.Filter) (int64, error) {
	n, err := ask(ctx, who, func(ctx context.Context, f *api.Filter) (int64, error) {
		t, sel, err := d.s.chooseOpen(ctx, topic, f)
		switch {
		case err != nil:
			return 0, err
		case sel.Reads == nil:
			return t.book.Select(&sel.Filter).Open, nil
		}
		return attend(ctx, d.s, t, func(ctx context.Context) (n int64, err error) {
			frozen, err := dlq.Freeze(ctx, topic, d.s.cfg.Kafka...)
			if err != nil {
				return 0, err
			}
			for _, err := range dlq.NewLedger(topic, t.Ledger, d.s.cfg.Kafka...).Letters(ctx, sel.Whole(), frozen, dlq.OpenOnly) {
				if err != nil {
					return 0, err
				}
				n++
			}
			return n, nil
		})
	}, f)
	if err != nil {
		return 0, err
	}
	return *n, nil
}

func (d consoleData) Rules(ctx context.Context, who *access.Identity) ([]api.Rule, error) {
	return d.s.listRules(by(ctx, who), &request.Nothing{})
}

func (d consoleData) TryRule(ctx context.Context, who *access.Identity, rule, topic string) (*api.RuleOnTopic, error) {
	return ask(ctx, who, d.s.tryRule, ruleOn(rule, topic))
}

func (d consoleData) RuleHistory(ctx context.Context, who *access.Identity, rule string) ([]api.RuleEvent, error) {
	return d.s.ruleHistory(by(ctx, who), &request.History{Rule: request.Rule{Rule: rule}})
}

func (d consoleData) RunVersion(topic string) uint64 {
	t := d.s.topic(topic)
	if t == nil {
		return 0
	}
	h := fnv.New64a()
	see := func(o *redrive.Outcome) {
		c := &o.Counts
		fmt.Fprint(h, o.ID, o.State, o.Heartbeat.UnixNano(), o.Stopped.UnixNano(), c.Sent, c.Succeeded, c.Failed, c.Retrying, c.Pending, t.silent(o))
	}
	for _, l := range d.s.runner.onTopic(topic) {
		o, _, _ := l.get()
		see(&o)
	}
	runs := t.known()
	for i := range runs {
		if runs[i].Counts.Pending > 0 || !runs[i].State.Finished() {
			see(&runs[i])
		}
	}
	fmt.Fprint(h, len(runs))
	return h.Sum64()
}

func (d consoleData) Version(topic string) uint64 {
	t := d.s.topic(topic)
	if t == nil {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprint(h, d.s.troubleOf(t, t.book.Progress().Problem), d.s.guards.Of(t.Source))
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.book.Changes() + uint64(t.read.ledger) + h.Sum64()
}

func (d consoleData) SilentSince() time.Time { return d.s.pulse.SilentSince() }

func (d consoleData) LetterVersion(topic string, partition int32, offset int64) uint64 {
	t := d.s.topic(topic)
	if t == nil {
		return 0
	}
	row, ok := t.book.At(partition, offset)
	if !ok {
		return 1
	}
	version := uint64(2)
	for _, c := range []byte(row.State) {
		version = version*31 + uint64(c)
	}
	return version
}
