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
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// consoleData is what the console shows of a server. Where the API has an answer, the console gets
// the API's.
type consoleData struct{ s *Server }

var _ console.Data = consoleData{}

func (d consoleData) Enter(w http.ResponseWriter, r *http.Request, who *access.Identity, length access.Length) (context.Context, func(), error) {
	return d.s.gate.Enter(w, r, who, length)
}

func (d consoleData) Hide(text string) string { return failure.Outside(d.s.redact, text) }

func (d consoleData) Roles(who *access.Identity) map[string]access.Role {
	all := map[string]access.Role{}
	for name := range d.s.cluster.All() {
		if role := who.On(name); role >= access.Viewer {
			all[name] = role
		}
	}
	return all
}

func (d consoleData) Topics(_ context.Context, who *access.Identity) (all []console.Topic) {
	for name, t := range d.s.cluster.All() {
		if role := who.On(name); role >= access.Viewer {
			all = append(all, d.topic(t, role))
		}
	}
	return all
}

func (d consoleData) Topic(ctx context.Context, who *access.Identity, name string) (*console.Topic, error) {
	t, err := operate.TopicFor(ctx, d.s.desk, who, name, access.Viewer)
	if err != nil {
		return nil, err
	}
	is := d.topic(t, who.On(name))
	return &is, nil
}

func (d consoleData) topic(t *watch.Topic, role access.Role) console.Topic {
	now := time.Now()
	is := console.Topic{Topic: operate.Summary(d.s.desk, t), Role: role, Silent: !t.SilentSince(d.s.cluster.Pulse).IsZero()}
	f, limits := watch.FiguresOf(t, now, d.s.desk.RuleList()), t.Settings.Thresholds
	for _, kind := range watch.AlertKinds {
		if a := kind.Due(&f, limits, now); a != nil {
			is.Alerts = append(is.Alerts, *a)
		}
	}
	is.Retention, is.Runs = t.Keeps(), t.Known()
	for i := range is.Runs { // what people wrote about a run, and errors, may quote letters
		r := &is.Runs[i]
		r.Why, r.Cause, r.Waiting = d.s.redact.Text(r.Why), failure.Outside(d.s.redact, r.Cause), failure.Outside(d.s.redact, r.Waiting)
	}
	return is
}

func filterOf(f *console.Filter) api.Filter {
	return api.Filter{Class: f.Classes, Fingerprint: f.Fingerprints, Group: f.Groups, Reason: f.Reasons, State: f.States(), Where: f.Where, Since: f.Since, Until: f.Until}
}

func (d consoleData) Groups(ctx context.Context, who *access.Identity, topic string, f *console.Filter) ([]api.Group, error) {
	return operate.ListGroups(ctx, d.s.desk, who, &request.Groups{Topic: request.Topic{Topic: topic}, Filter: filterOf(f)})
}

func (d consoleData) Letters(ctx context.Context, who *access.Identity, topic string, f *console.Filter, n int) (*api.Letters, error) {
	page, err := operate.ListLetters(ctx, d.s.desk, who, &request.Letters{Topic: request.Topic{Topic: topic}, Filter: filterOf(f), Cursor: f.Cursor, Limit: n})
	if err != nil {
		return nil, err
	}
	return &page, nil
}

func (d consoleData) Letter(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64) (*api.LetterDetail, error) {
	letter, err := operate.GetLetter(ctx, d.s.desk, who, &request.Letter{Topic: request.Topic{Topic: topic}, Partition: partition, Offset: offset})
	if err != nil {
		return nil, err
	}
	return &letter, nil
}

func (d consoleData) Times(ctx context.Context, who *access.Identity, topic string, f *console.Filter, from time.Time, length time.Duration, n, most int) ([]book.Series, error) {
	filter := filterOf(f)
	t, sel, err := operate.Choose(ctx, d.s.desk, who, topic, &filter, access.Viewer)
	if err != nil {
		return nil, err
	}
	return t.Book.Times(&sel.Filter, from, length, n, most), nil
}

func (d consoleData) Acts(ctx context.Context, who *access.Identity, topic string) ([]book.Act, error) {
	t, err := operate.TopicFor(ctx, d.s.desk, who, topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	acts := t.Book.Acts()
	for i := range acts {
		acts[i].Why = d.s.redact.Text(acts[i].Why)
	}
	return acts, nil
}

func (d consoleData) Prunes(ctx context.Context, who *access.Identity, topic string) ([]dlq.PruneRecord, error) {
	t, err := operate.TopicFor(ctx, d.s.desk, who, topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	all := t.Book.Prunes()
	for i := range all {
		p := &all[i]
		p.Why, p.Archive, p.Error = d.s.redact.Text(p.Why), failure.Outside(d.s.redact, p.Archive), failure.Outside(d.s.redact, p.Error)
	}
	return all, nil
}

func (d consoleData) RuleActs(ctx context.Context, who *access.Identity, topic string) (all []console.RuleAct, err error) {
	t, err := operate.TopicFor(ctx, d.s.desk, who, topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	for _, name := range watch.DecidedRules(t) {
		for _, is := range watch.Decisions(t, name) {
			if is.Do == watch.DoPause || is.Do == watch.DoResume {
				all = append(all, console.RuleAct{Rule: name, Paused: is.Do == watch.DoPause, By: is.By, Why: d.s.redact.Text(is.Why), At: is.At})
			}
		}
	}
	return all, nil
}

func (d consoleData) Runs(ctx context.Context, who *access.Identity) ([]api.Run, error) {
	return operate.ListAllRuns(ctx, d.s.desk, who, &request.Newest{})
}

func (d consoleData) Run(ctx context.Context, who *access.Identity, topic, id string) (*api.Run, error) {
	run, err := operate.GetRun(ctx, d.s.desk, who, &request.Run{Topic: request.Topic{Topic: topic}, Run: id})
	if err != nil {
		return nil, failure.ProblemOf(err)
	}
	return &run, nil
}

func (d consoleData) Count(ctx context.Context, who *access.Identity, topic string, f *api.Filter) (int64, error) {
	n, err := operate.CountOpen(ctx, d.s.desk, who, topic, f)
	return n, failure.ProblemOf(err)
}

func (d consoleData) Rules(ctx context.Context, who *access.Identity) ([]api.Rule, error) {
	return operate.ListRules(ctx, d.s.desk, who, &request.Nothing{})
}

func (d consoleData) TryRule(ctx context.Context, who *access.Identity, rule, topic string) (*api.RuleOnTopic, error) {
	return ask(ctx, who, d.s.desk, operate.TryRule, ruleOn(rule, topic))
}

func (d consoleData) RuleHistory(ctx context.Context, who *access.Identity, rule string) ([]api.RuleEvent, error) {
	return operate.RuleHistory(ctx, d.s.desk, who, &request.History{Rule: request.Rule{Rule: rule}})
}

func (d consoleData) RunVersion(topic string) uint64 {
	t := d.s.cluster.Topic(topic)
	if t == nil {
		return 0
	}
	h := fnv.New64a()
	see := func(o *redrive.Outcome) {
		c := &o.Counts
		fmt.Fprint(h, o.ID, o.State, o.Heartbeat.UnixNano(), o.Stopped.UnixNano(), c.Sent, c.Succeeded, c.Failed, c.Retrying, c.Pending, t.Silent(o))
	}
	for _, l := range d.s.desk.Runner.OnTopic(topic) {
		o, _, _ := l.Get()
		see(&o)
	}
	runs := t.Known()
	for i := range runs {
		if runs[i].Counts.Pending > 0 || !runs[i].State.Finished() {
			see(&runs[i])
		}
	}
	fmt.Fprint(h, len(runs))
	return h.Sum64()
}

func (d consoleData) Version(topic string) uint64 {
	t := d.s.cluster.Topic(topic)
	if t == nil {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprint(h, d.s.cluster.Trouble(t, t.Book.Progress().Problem), d.s.cluster.Guards.Of(t.Source))
	return t.Book.Changes() + t.LedgerEnd() + h.Sum64()
}

func (d consoleData) SilentSince() time.Time { return d.s.cluster.Pulse.SilentSince() }

func (d consoleData) LetterVersion(topic string, partition int32, offset int64) uint64 {
	t := d.s.cluster.Topic(topic)
	if t == nil {
		return 0
	}
	row, ok := t.Book.At(partition, offset)
	if !ok {
		return 1
	}
	version := uint64(2)
	for _, c := range []byte(row.State) {
		version = version*31 + uint64(c)
	}
	return version
}
