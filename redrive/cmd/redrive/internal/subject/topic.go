package subject

// The topics of the cluster that siding made.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/retrytopics"
)

// A Sibling is a topic of the cluster that is derived from a source topic.
type Sibling struct {
	Topic string
	retrytopics.Name
	Partitions   int
	SourceListed bool
}

// Siblings lists the cluster's topics of one kind, sorted by name.
func Siblings(all kadm.TopicDetails, naming retrytopics.Naming, kind retrytopics.Kind) []Sibling {
	var found []Sibling
	for _, topic := range all.Names() {
		name, ok := naming.Parse(topic)
		if !ok || name.Kind != kind {
			continue
		}
		found = append(found, Sibling{Topic: topic, Name: name, Partitions: len(all[topic].Partitions), SourceListed: all.Has(name.Source)})
	}
	return found
}

// EachTopic prints an object about each topic, one after the other: in JSON several are an array,
// or a line each. An error about one topic leaves the others as they are.
func EachTopic(ctx context.Context, s *cli.Session, topics []string, do func(topic string, show func(...output.Field) error) error) error {
	write, list := s.Screen.Object, s.Screen.List()
	several := len(topics) > 1 && s.Screen.Format != output.Table
	if several {
		write = list.Row
	}
	shown, unwritten := 0, error(nil)
	show := func(fields ...output.Field) error {
		if shown++; shown > 1 && s.Screen.Format == output.Table {
			_, unwritten = io.WriteString(s.Screen.Data(), "\n")
		}
		if unwritten == nil {
			unwritten = write(fields...)
		}
		return unwritten
	}
	err := OnEach(ctx, s, topics, func(topic string) (bool, error) {
		err := do(topic, show)
		return unwritten != nil, err
	})
	if several && unwritten == nil && cli.ExitCode(err) != cli.ExitUsage {
		err = errors.Join(err, list.Close())
	}
	return err
}

// Names are the names of topics.
func Names(all []Sibling) []string {
	list := make([]string, len(all))
	for i, s := range all {
		list[i] = s.Topic
	}
	return list
}

// notDeadLetters returns an error for a topic that by its name is no dead-letter topic. It suggests
// the dead-letter topic of the same source, if that exists.
func notDeadLetters(ctx context.Context, s *cli.Session, topic string) error {
	name, ok := s.Naming.Parse(topic)
	if ok && name.Kind == retrytopics.KindDLQ {
		return nil
	}
	template := TemplateOf(s.Naming, retrytopics.KindDLQ)
	source, problem := topic, fmt.Sprintf("%s is not a dead-letter topic by the naming %s (--dlq-name sets another)", topic, template)
	if ok {
		source = name.Source
	}
	if ok && name.Kind == retrytopics.KindLedger {
		problem = fmt.Sprintf("%s is a ledger by its name, so it has no dead letters", topic)
	}
	if names, err := s.Naming.Siblings(source, "group"); err == nil && !strings.Contains(template, "{group}") {
		if all, err := s.Admin.ListTopics(ctx, names.DLQ); err == nil && all.Has(names.DLQ) {
			problem += fmt.Sprintf("; did you mean %s?", names.DLQ)
		}
	}
	return cli.Usage(errors.New(problem))
}

// OnEach does something for each topic, one after the other, until it has enough. An error about
// one topic leaves the others as they are. A name that can be no dead-letter topic's is an error of
// usage: nothing is done then.
func OnEach(ctx context.Context, s *cli.Session, topics []string, do func(topic string) (enough bool, err error)) error {
	var errs []error
	for _, topic := range topics {
		errs = append(errs, notDeadLetters(ctx, s, topic))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	errs = nil
	for _, topic := range topics {
		enough, err := do(topic)
		if len(topics) > 1 && cli.ExitCode(err) == cli.ExitUsage {
			err = cli.Coded(cli.ExitError, err) // the others are done
		}
		if errs = append(errs, err); enough || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// FindTopic finds a dead-letter topic by its name, or returns why it can't be used.
func FindTopic(ctx context.Context, s *cli.Session, topic string) (Sibling, error) {
	if err := notDeadLetters(ctx, s, topic); err != nil {
		return Sibling{}, err
	}
	all, err := s.Admin.ListTopics(ctx, topic)
	if err != nil {
		return Sibling{}, cli.OnTopic("DESCRIBE", topic, err)
	}
	switch d := all[topic]; {
	case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return Sibling{}, fmt.Errorf("topic %s does not exist: redrive topics --quick lists those that there are", topic)
	case d.Err != nil:
		return Sibling{}, cli.OnTopic("DESCRIBE", topic, d.Err)
	}
	// Without the permission to read the configuration there is the name alone.
	if configs, err := s.Admin.DescribeTopicConfigs(ctx, topic); err == nil && IsCompacted(configs, topic) {
		return Sibling{}, errors.New(Compacted(topic))
	}
	return Siblings(all, s.Naming, retrytopics.KindDLQ)[0], nil
}

// Compacted is why a compacted topic is not used, whatever its name: a ledger is compacted, and
// under another team's naming its name may fit the templates. To prune it would cost its entries.
func Compacted(topic string) string {
	return fmt.Sprintf("%s is compacted, as ledgers are: by its name it is a dead-letter topic, which must not be compacted. "+
		"If it is a ledger of another naming, --dlq-name and --ledger-name set the naming; if it has dead letters, set its cleanup.policy to delete first", topic)
}

// IsCompacted reports whether a topic is known to be compacted.
func IsCompacted(configs kadm.ResourceConfigs, topic string) bool {
	policy, err := Setting(configs, topic, "cleanup.policy")
	return err == nil && strings.Contains(policy, "compact")
}

// Setting returns a setting of a topic; empty if the topic has none of that key.
func Setting(configs kadm.ResourceConfigs, topic, key string) (string, error) {
	c, err := configs.On(topic, nil)
	if err := cmp.Or(err, c.Err); err != nil {
		return "", err
	}
	for _, kv := range c.Configs {
		if kv.Key == key {
			return kv.MaybeValue(), nil
		}
	}
	return "", nil
}

// TemplateOf is how topics of a kind are named.
func TemplateOf(naming retrytopics.Naming, kind retrytopics.Kind) string {
	if kind == retrytopics.KindRetry {
		return cmp.Or(naming.Retry, retrytopics.DefaultRetry)
	}
	return cmp.Or(naming.DLQ, retrytopics.DefaultDLQ)
}

// CompleteTopic completes a verb's first argument, or all of several, by the cluster's dead-letter
// topics.
func CompleteTopic(t *cli.Tool, several bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) == 0 || several {
			given := func(name string) bool { return slices.Contains(args, name) }
			names = slices.DeleteFunc(LookUpTopics(cmd.Context(), t), given)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// LookUpTopics asks the cluster for its dead-letter topics.
func LookUpTopics(ctx context.Context, t *cli.Tool) (found []string) {
	LookUp(ctx, t, func(ctx context.Context, s *cli.Session) error {
		all, err := s.Admin.ListTopics(ctx)
		found = Names(Siblings(all, s.Naming, retrytopics.KindDLQ))
		return err
	})
	return found
}

// LookUp asks the cluster. After Tab the user waits a second, not ten, and gets no error.
func LookUp(ctx context.Context, t *cli.Tool, ask func(context.Context, *cli.Session) error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	silent := *t
	silent.Screen = output.NewScreen(io.Discard, io.Discard, t.Env.Getenv)
	_ = silent.With(ctx, func(s *cli.Session) error { return ask(ctx, s) })
}
