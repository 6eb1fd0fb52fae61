package serve

import (
	"context"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// consoleActions are what people do over the console, by the API's handlers.
type consoleActions struct{ s *Server }

var _ console.Actions = consoleActions{}

// ask lets a handler of the API answer somebody.
func ask[In, Out any](ctx context.Context, who *access.Identity, handler func(context.Context, *In) (Out, error), in *In) (*Out, error) {
	out, err := handler(by(ctx, who), in)
	if err != nil {
		return nil, problemOf(err)
	}
	return &out, nil
}

func (a consoleActions) Plan(ctx context.Context, who *access.Identity, topic string, in *api.RunRequest) (*api.Plan, error) {
	return ask(ctx, who, a.s.planRun, &request.Plan{Topic: request.Topic{Topic: topic}, Body: *in})
}

func (a consoleActions) Start(ctx context.Context, who *access.Identity, topic, key string, in *api.RunRequest) (*api.Run, error) {
	return ask(ctx, who, a.s.startRun, &request.Start{Topic: request.Topic{Topic: topic}, Key: request.Key{IdempotencyKey: key}, Body: *in})
}

func (a consoleActions) Edited(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64, e *api.Edit) (before, after *api.Content, err error) {
	type contents struct{ before, after *api.Content }
	in := letterIn(topic, partition, offset)
	got, err := ask(ctx, who, func(ctx context.Context, in *request.Letter) (c contents, err error) {
		c.before, c.after, err = a.s.editedLetter(ctx, in, e)
		return c, err
	}, &in)
	if err != nil {
		return nil, nil, err
	}
	return got.before, got.after, nil
}

// editedLetter returns what a letter carries before and after an edit, without what is hidden.
func (s *Server) editedLetter(ctx context.Context, in *request.Letter, e *api.Edit) (before, after *api.Content, err error) {
	t, err := s.topicFor(ctx, in.Topic.Topic, access.Operator)
	if err != nil {
		return nil, nil, err
	}
	edit, err := editOf(e)
	if err != nil {
		return nil, nil, err
	}
	l, _, err := findLetter(ctx, s, t, in)
	if err != nil {
		return nil, nil, err
	}
	record, edited := *l.Record, *l
	if record.Headers, record.Value, err = edit.Apply(headers.Strip(record.Headers), record.Value); err != nil {
		return nil, nil, problem(api.EditFailed, "%v", err)
	}
	edited.Record = &record
	shown, hides := s.redact.Letter(l)
	if hides {
		record.Value = editedHidden(&edit, shown.Record.Value)
	}
	changed, _ := s.redact.Letter(&edited)
	return contentOf(shown), contentOf(changed), nil
}

// editedHidden edits a value of which something is hidden, as it is shown. What the rules hide of
// the real value they might not hide after the edit: a pattern may know what stands around it.
func editedHidden(edit *redrive.Edit, shown []byte) []byte {
	_, value, err := edit.Apply(nil, shown)
	if err != nil { // with its marks it is no JSON any more
		return []byte(redact.Mark)
	}
	return value
}

func (a consoleActions) Abort(ctx context.Context, who *access.Identity, topic, id string) (*api.Run, error) {
	return ask(ctx, who, a.s.abortRun, &request.Abort{Run: runOf(topic, id)})
}

func (a consoleActions) Resume(ctx context.Context, who *access.Identity, topic, id string) (*api.Run, error) {
	return ask(ctx, who, a.s.resumeRun, &request.Resume{Run: runOf(topic, id)})
}

func runOf(topic, id string) request.Run {
	return request.Run{Topic: request.Topic{Topic: topic}, Run: id}
}

func (a consoleActions) Discard(ctx context.Context, who *access.Identity, topic string, in *api.BulkDiscardRequest) error {
	_, err := ask(ctx, who, a.s.discardLetters, &request.BulkDiscard{Topic: request.Topic{Topic: topic}, Body: *in})
	return err
}

func (a consoleActions) DiscardLetter(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64, in *api.DiscardRequest) error {
	_, err := ask(ctx, who, a.s.discardLetter, &request.Discard{Letter: letterIn(topic, partition, offset), Body: *in})
	return err
}

func (a consoleActions) Reopen(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64, in *api.ReopenRequest) error {
	_, err := ask(ctx, who, a.s.reopenLetter, &request.Reopen{Letter: letterIn(topic, partition, offset), Body: *in})
	return err
}

func (a consoleActions) PauseRule(ctx context.Context, who *access.Identity, rule, topic string, in *api.PauseRequest) error {
	_, err := ask(ctx, who, a.s.pauseRule, &request.Pause{RuleOn: *ruleOn(rule, topic), Body: *in})
	return err
}

func (a consoleActions) ResumeRule(ctx context.Context, who *access.Identity, rule, topic string, in *api.PauseRequest) error {
	_, err := ask(ctx, who, a.s.resumeRule, &request.Pause{RuleOn: *ruleOn(rule, topic), Body: *in})
	return err
}

func letterIn(topic string, partition int32, offset int64) request.Letter {
	return request.Letter{Topic: request.Topic{Topic: topic}, Partition: partition, Offset: offset}
}

func ruleOn(rule, topic string) *request.RuleOn {
	return &request.RuleOn{Rule: request.Rule{Rule: rule}, Topic: request.Topic{Topic: topic}}
}
