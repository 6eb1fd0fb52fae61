package serve

import (
	"context"
	"net/http"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/book"
	"github.com/sidingkafka/siding/serve/internal/console"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
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
	return operate.Roles(d.s.desk, who)
}

func (d consoleData) Topics(_ context.Context, who *access.Identity) (all []console.Topic) {
	for _, t := range operate.SeeTopics(d.s.desk, who) {
		all = append(all, console.Topic(t))
	}
	return all
}

func (d consoleData) Topic(ctx context.Context, who *access.Identity, name string) (*console.Topic, error) {
	t, err := operate.SeeTopic(ctx, d.s.desk, who, name)
	if err != nil {
		return nil, err
	}
	is := console.Topic(t)
	return &is, nil
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
	return operate.Times(ctx, d.s.desk, who, topic, &filter, from, length, n, most)
}

func (d consoleData) Acts(ctx context.Context, who *access.Identity, topic string) ([]book.Act, error) {
	all, err := operate.TopicHistory(ctx, d.s.desk, who, topic)
	return all.Acts, err
}

func (d consoleData) Prunes(ctx context.Context, who *access.Identity, topic string) ([]dlq.PruneRecord, error) {
	all, err := operate.TopicHistory(ctx, d.s.desk, who, topic)
	return all.Prunes, err
}

func (d consoleData) RuleActs(ctx context.Context, who *access.Identity, topic string) (all []console.RuleAct, err error) {
	history, err := operate.TopicHistory(ctx, d.s.desk, who, topic)
	for _, act := range history.RuleActs {
		all = append(all, console.RuleAct(act))
	}
	return all, err
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

func (d consoleData) RunVersion(topic string) uint64 { return operate.RunVersion(d.s.desk, topic) }

func (d consoleData) Version(topic string) uint64 { return operate.Version(d.s.desk, topic) }

func (d consoleData) SilentSince() time.Time { return operate.SilentSince(d.s.desk) }

func (d consoleData) LetterVersion(topic string, partition int32, offset int64) uint64 {
	return operate.LetterVersion(d.s.desk, topic, partition, offset)
}
