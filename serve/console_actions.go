package serve

import (
	"context"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// consoleActions are what people do over the console, by the API's handlers.
type consoleActions struct{ s *Server }

var _ console.Actions = consoleActions{}

// ask lets a handler of the API answer somebody.
func ask[In, Out any](ctx context.Context, who *access.Identity, d *operate.Desk, f func(context.Context, *operate.Desk, *access.Identity, *In) (Out, error), in *In) (*Out, error) {
	out, err := f(ctx, d, who, in)
	if err != nil {
		return nil, failure.ProblemOf(err)
	}
	return &out, nil
}

func (a consoleActions) Plan(ctx context.Context, who *access.Identity, topic string, in *api.RunRequest) (*api.Plan, error) {
	return ask(ctx, who, a.s.desk, operate.PlanRun, &request.Plan{Topic: request.Topic{Topic: topic}, Body: *in})
}

func (a consoleActions) Start(ctx context.Context, who *access.Identity, topic, key string, in *api.RunRequest) (*api.Run, error) {
	return ask(ctx, who, a.s.desk, operate.StartRun, &request.Start{Topic: request.Topic{Topic: topic}, Key: request.Key{IdempotencyKey: key}, Body: *in})
}

func (a consoleActions) Edited(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64, e *api.Edit) (before, after *api.Content, err error) {
	in := letterIn(topic, partition, offset)
	before, after, err = operate.EditedLetter(ctx, a.s.desk, who, &in, e)
	return before, after, failure.ProblemOf(err)
}

func (a consoleActions) Abort(ctx context.Context, who *access.Identity, topic, id string) (*api.Run, error) {
	return ask(ctx, who, a.s.desk, operate.AbortRun, &request.Abort{Run: runOf(topic, id)})
}

func (a consoleActions) Resume(ctx context.Context, who *access.Identity, topic, id string) (*api.Run, error) {
	return ask(ctx, who, a.s.desk, operate.ResumeRun, &request.Resume{Run: runOf(topic, id)})
}

func runOf(topic, id string) request.Run {
	return request.Run{Topic: request.Topic{Topic: topic}, Run: id}
}

func (a consoleActions) Discard(ctx context.Context, who *access.Identity, topic string, in *api.BulkDiscardRequest) error {
	_, err := ask(ctx, who, a.s.desk, operate.DiscardLetters, &request.BulkDiscard{Topic: request.Topic{Topic: topic}, Body: *in})
	return err
}

func (a consoleActions) DiscardLetter(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64, in *api.DiscardRequest) error {
	_, err := ask(ctx, who, a.s.desk, operate.DiscardLetter, &request.Discard{Letter: letterIn(topic, partition, offset), Body: *in})
	return err
}

func (a consoleActions) Reopen(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64, in *api.ReopenRequest) error {
	_, err := ask(ctx, who, a.s.desk, operate.ReopenLetter, &request.Reopen{Letter: letterIn(topic, partition, offset), Body: *in})
	return err
}

func (a consoleActions) PauseRule(ctx context.Context, who *access.Identity, rule, topic string, in *api.PauseRequest) error {
	_, err := ask(ctx, who, a.s.desk, operate.PauseRule, &request.Pause{RuleOn: *ruleOn(rule, topic), Body: *in})
	return err
}

func (a consoleActions) ResumeRule(ctx context.Context, who *access.Identity, rule, topic string, in *api.PauseRequest) error {
	_, err := ask(ctx, who, a.s.desk, operate.ResumeRule, &request.Pause{RuleOn: *ruleOn(rule, topic), Body: *in})
	return err
}

func letterIn(topic string, partition int32, offset int64) request.Letter {
	return request.Letter{Topic: request.Topic{Topic: topic}, Partition: partition, Offset: offset}
}

func ruleOn(rule, topic string) *request.RuleOn {
	return &request.RuleOn{Rule: request.Rule{Rule: rule}, Topic: request.Topic{Topic: topic}}
}
