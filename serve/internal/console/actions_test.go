package console

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
)

// deeds are what was asked of an archive, the latest last.
type deeds struct {
	refuse error // what is asked for
	slow   error // what is planned
	runs   atomic.Int64
	last   api.RunRequest
	key    string
	paused bool // the rule
	silent bool // no process owns the run
	frozen bool // the brokers do not answer
	older  []api.Run
	did    []string
}

func (a *archive) Plan(_ context.Context, _ *access.Identity, topic string, in *api.RunRequest) (*api.Plan, error) {
	if a.slow != nil {
		return nil, a.slow
	}
	if a.role < access.Operator {
		return nil, &pageError{http.StatusForbidden, "this takes the role operator"}
	}
	a.last = *in
	if a.settled {
		return &api.Plan{Topic: topic}, nil
	}
	return &api.Plan{
		Topic: topic, Letters: 1902, ByClass: map[string]int64{a.class: 1902}, ByGroup: map[string]int64{a.name: 1902}, ByPartition: map[string]int64{"0": 1902},
		Targets: map[string]int64{a.name: 1902}, SeenBy: []string{a.name}, Skipped: map[string]int64{a.message: 3}, Warnings: []string{a.message}, SendingMs: 38 * 60 * 1000,
	}, nil
}

func (a *archive) Start(ctx context.Context, _ *access.Identity, topic, key string, in *api.RunRequest) (*api.Run, error) {
	a.last, a.key = *in, key
	if a.frozen {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if a.refuse != nil {
		return nil, a.refuse
	}
	a.runs.Add(1)
	return &api.Run{Topic: topic, ID: "r1"}, nil
}

// run is a run of the archive.
func (a *archive) run() api.Run {
	now := past()
	return api.Run{
		Topic: "orders.dlq", ID: a.name, State: "sending", Waiting: a.message, By: a.name, Why: a.message, Owner: a.name, Started: now.Add(-time.Minute), Heartbeat: now, Rate: 20,
		Pace: api.Pace{Rate: 50, MaxLag: 1000, WindowMs: 30000, RampMs: 30000, Canary: 1, TolerateShare: 0.1}, Notices: []string{a.message}, Silent: a.silent,
		Counts: api.Counts{Selected: 1902, Sent: 1000, Succeeded: 900, Failed: 40, FailedByClass: map[string]int64{a.class: 40}, Pending: 60, Skipped: map[string]int64{a.message: 2}},
	}
}

func (a *archive) Runs(context.Context, *access.Identity) ([]api.Run, error) {
	if a.settled || a.empty {
		return nil, nil
	}
	ended := past().Add(-time.Hour)
	return append([]api.Run{a.run(), {Topic: "orders.dlq", ID: "r0", State: "aborted", Cause: a.message, By: "ada", Started: ended.Add(-time.Hour), Ended: &ended, Counts: api.Counts{Selected: 5, Sent: 1, Failed: 1}}}, a.older...), nil
}

func (a *archive) Run(ctx context.Context, who *access.Identity, _, id string) (*api.Run, error) {
	all, _ := a.Runs(ctx, who)
	for _, r := range all {
		if r.ID == id {
			return &r, nil
		}
	}
	return nil, &pageError{http.StatusNotFound, "there is no run " + id}
}

func (a *archive) RunVersion(string) uint64 { return a.version.Load() }

func (a *archive) Abort(context.Context, *access.Identity, string, string) (*api.Run, error) {
	a.did = append(a.did, "abort")
	return nil, a.refuse
}

func (a *archive) Resume(context.Context, *access.Identity, string, string) (*api.Run, error) {
	a.did = append(a.did, "resume")
	return nil, a.refuse
}

func (a *archive) Edited(_ context.Context, _ *access.Identity, _ string, _ int32, _ int64, e *api.Edit) (before, after *api.Content, err error) {
	if a.slow != nil {
		return nil, nil, a.slow
	}
	before = &api.Content{Value: api.Bytes{Text: ptr(a.value), Size: len(a.value)}, Headers: []api.Header{{Key: a.name, Value: api.Bytes{Text: ptr(a.value), Size: len(a.value)}}}}
	after = &api.Content{Value: before.Value}
	if e.Value != nil {
		after.Value = api.Bytes{Text: ptr(e.Value.Text), Size: len(e.Value.Text)}
	}
	for _, h := range e.SetHeaders {
		after.Headers = append(after.Headers, api.Header{Key: h.Key, Value: api.Bytes{Text: ptr(h.Value.Text), Size: len(h.Value.Text)}})
	}
	return before, after, nil
}

func (a *archive) Count(_ context.Context, _ *access.Identity, _ string, f *api.Filter) (int64, error) {
	a.last.Filter = *f
	if a.settled {
		return 0, nil
	}
	return 1902, nil
}

func (a *archive) do(what string) error {
	a.did = append(a.did, what)
	return a.refuse
}

func (a *archive) Discard(_ context.Context, _ *access.Identity, _ string, in *api.BulkDiscardRequest) error {
	a.last.Filter, a.last.Expect = in.Filter, &in.Expect
	return a.do("discard all: " + in.Why)
}

func (a *archive) DiscardLetter(_ context.Context, _ *access.Identity, _ string, _ int32, _ int64, in *api.DiscardRequest) error {
	return a.do("discard one: " + in.Why)
}

func (a *archive) Reopen(_ context.Context, _ *access.Identity, _ string, _ int32, _ int64, in *api.ReopenRequest) error {
	return a.do("reopen: " + in.Why)
}

func (a *archive) PauseRule(_ context.Context, _ *access.Identity, rule, _ string, in *api.PauseRequest) error {
	return a.do("pause " + rule + ": " + in.Why)
}

func (a *archive) ResumeRule(_ context.Context, _ *access.Identity, rule, _ string, in *api.PauseRequest) error {
	return a.do("resume " + rule + ": " + in.Why)
}

func (a *archive) ruleOn() api.RuleOnTopic {
	on := api.RuleOnTopic{Topic: "orders.dlq", Would: "nothing", Why: a.message, Letters: 7, Read: 12, Problem: "where failed on 1 letter", Open: true, Until: ptr(past().Add(time.Hour)), Cause: a.message}
	if a.paused {
		on.Paused = &api.Paused{By: a.name, At: past().Add(-time.Hour), Why: a.message}
	}
	return on
}

func (a *archive) Rules(context.Context, *access.Identity) ([]api.Rule, error) {
	if a.settled || a.empty {
		return nil, nil
	}
	return []api.Rule{
		{Name: a.name, Topics: a.name, Classes: []string{a.class}, Groups: []string{a.name}, Filter: api.Filter{Header: []string{"job-type=" + a.name}, Where: a.message, Since: past()}, Times: []string{a.name}, Zone: a.name, CoolDownMs: 600_000, On: []api.RuleOnTopic{a.ruleOn()}},
		{Name: "for none", Topics: "*"},
	}, nil
}

func (a *archive) TryRule(_ context.Context, _ *access.Identity, rule, _ string) (*api.RuleOnTopic, error) {
	if rule == "none" {
		return nil, &pageError{http.StatusNotFound, "there is no rule none"}
	}
	return ptr(a.ruleOn()), nil
}

func (a *archive) RuleHistory(context.Context, *access.Identity, string) ([]api.RuleEvent, error) {
	if a.settled {
		return nil, nil
	}
	return []api.RuleEvent{{Topic: "orders.dlq", At: past(), What: "redrive", Run: a.name, Why: a.message, End: a.message}, {Topic: "bills.dlq", What: "of another topic"}, {Topic: "orders.dlq", At: past(), What: "paused", By: a.name}}, nil
}
