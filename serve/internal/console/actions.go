package console

import (
	"context"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
)

// Actions are what people do over the console. They check roles, change letters and answer as the
// API does: an error is as those of [Data], and after one with a status below 500 nothing was done.
// It is safe for concurrent use.
type Actions interface {
	// Plan returns what a run would do, and Start begins it. A key makes a repetition harmless.
	Plan(ctx context.Context, who *access.Identity, topic string, in *api.RunRequest) (*api.Plan, error)
	Start(ctx context.Context, who *access.Identity, topic, key string, in *api.RunRequest) (*api.Run, error)
	// Edited returns what a letter carries before and after an edit. It changes nothing.
	Edited(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64, e *api.Edit) (before, after *api.Content, err error)
	// Abort ends a run for good, and Resume continues one that no process owns.
	Abort(ctx context.Context, who *access.Identity, topic, id string) (*api.Run, error)
	Resume(ctx context.Context, who *access.Identity, topic, id string) (*api.Run, error)
	// Discard discards the letters that a filter selects, if their number is the expected one, and
	// DiscardLetter one of them. Reopen withdraws that.
	Discard(ctx context.Context, who *access.Identity, topic string, in *api.BulkDiscardRequest) error
	DiscardLetter(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64, in *api.DiscardRequest) error
	Reopen(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64, in *api.ReopenRequest) error
	// PauseRule keeps a rule from beginning runs on a topic, and ResumeRule withdraws that.
	PauseRule(ctx context.Context, who *access.Identity, rule, topic string, in *api.PauseRequest) error
	ResumeRule(ctx context.Context, who *access.Identity, rule, topic string, in *api.PauseRequest) error
}
