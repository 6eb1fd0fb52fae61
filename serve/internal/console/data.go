package console

import (
	"context"
	"net/http"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/book"
	"github.com/sidingkafka/siding/serve/internal/incident"
)

// Data is what the console shows. It answers as the API does: an error with a method GetStatus has
// the status of the answer, and a text that says what to do. It is safe for concurrent use.
type Data interface {
	// Hide returns the text of an error without what nobody may see: it may quote a letter.
	Hide(text string) string
	// Enter keeps a request to the limits of its sender, who is nil while nobody knows them. ctx
	// ends when the request has taken as long as it may; it has a deadline, unless the length is
	// that of a stream. The caller calls end after the answer.
	Enter(w http.ResponseWriter, r *http.Request, who *access.Identity, length access.Length) (ctx context.Context, end func(), err error)
	// Roles returns the roles that somebody has, by topic. Topics without a role are missing. It
	// costs next to nothing: it is asked for each request.
	Roles(who *access.Identity) map[string]access.Role
	// Topics returns the topics on which somebody has a role, in any order, and Topic one of them.
	Topics(ctx context.Context, who *access.Identity) []Topic
	Topic(ctx context.Context, who *access.Identity, name string) (*Topic, error)
	// Groups returns the open letters by class and fingerprint, the most letters first.
	Groups(ctx context.Context, who *access.Identity, topic string, f *Filter) ([]api.Group, error)
	// Letters returns a page of n letters, the newest first; the one that f.Cursor names.
	Letters(ctx context.Context, who *access.Identity, topic string, f *Filter, n int) (*api.Letters, error)
	// Letter returns one letter.
	Letter(ctx context.Context, who *access.Identity, topic string, partition int32, offset int64) (*api.LetterDetail, error)
	// Times counts letters by class and time, as [book.Book.Times] does.
	Times(ctx context.Context, who *access.Identity, topic string, f *Filter, from time.Time, by time.Duration, n, most int) ([]book.Series, error)
	// Acts returns what people did to letters of a topic without a run, the latest first.
	Acts(ctx context.Context, who *access.Identity, topic string) ([]book.Act, error)
	// Prunes returns what was deleted of a topic, and RuleActs who paused rules on it and let them
	// go on, the latest first.
	Prunes(ctx context.Context, who *access.Identity, topic string) ([]dlq.PruneRecord, error)
	RuleActs(ctx context.Context, who *access.Identity, topic string) ([]RuleAct, error)
	// Count returns how many open letters a filter selects.
	Count(ctx context.Context, who *access.Identity, topic string, f *api.Filter) (int64, error)
	// Rules returns the rules with their states on the topics on which somebody has a role. TryRule
	// returns what one would do now, and RuleHistory what it did, the newest first.
	Rules(ctx context.Context, who *access.Identity) ([]api.Rule, error)
	TryRule(ctx context.Context, who *access.Identity, rule, topic string) (*api.RuleOnTopic, error)
	RuleHistory(ctx context.Context, who *access.Identity, rule string) ([]api.RuleEvent, error)
	// Runs returns the runs of the topics on which somebody has a role, the newest first, and Run
	// one of them.
	Runs(ctx context.Context, who *access.Identity) ([]api.Run, error)
	Run(ctx context.Context, who *access.Identity, topic, id string) (*api.Run, error)
	// SilentSince returns since when no broker has answered, if that is too long ago; zero
	// otherwise.
	SilentSince() time.Time
	// RunVersion returns a number that is another one when a run of a topic has other numbers. It
	// costs next to nothing.
	RunVersion(topic string) uint64
	// Version returns a number that is another when a topic or its problem changes, and
	// LetterVersion one that is another when the state of a letter changes. Both cost next to
	// nothing.
	Version(topic string) uint64
	LetterVersion(topic string, partition int32, offset int64) uint64
}

// RuleAct is that somebody paused a rule on a topic, or let it go on.
type RuleAct struct {
	Rule    string
	Paused  bool
	By, Why string
	At      time.Time
}

// Topic is a dead-letter topic as somebody sees it.
type Topic struct {
	api.Topic
	// Role is the role on it.
	Role access.Role
	// Silent tells that nothing came of the brokers since Known, which is too long ago.
	Silent bool
	// Alerts are the thresholds that it exceeds.
	Alerts []incident.Alert
	// Retention is how long Kafka keeps its letters; zero if for ever, or if that is not known.
	Retention time.Duration
	// Runs are its runs.
	Runs []redrive.Outcome
}
