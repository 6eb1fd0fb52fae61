package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/retrytopics"
)

// topics are a dead-letter topic and its source and ledger.
type topics struct {
	naming              retrytopics.Naming
	dlq, source, ledger string
}

// refuse returns the refusal of a run.
func (t *topics) refuse(why Refusal, format string, args ...any) error {
	return &RefusedError{Topic: t.dlq, Reason: why, Detail: fmt.Sprintf(format, args...)}
}

// refuseGroups refuses letters of groups that cannot get them.
func (t *topics) refuseGroups(groups []string, why Refusal, format string, args ...any) error {
	return &RefusedError{Topic: t.dlq, Reason: why, Detail: fmt.Sprintf(format, args...), Groups: groups}
}

// watched lists the topics in which failures show: the retry topics of the groups, the dead-letter
// topic and its ledger.
func (t *topics) watched(ctx context.Context, adm *kadm.Client, groups []string) (kadm.TopicDetails, error) {
	all, err := adm.ListTopics(ctx)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		// The answer omits hidden topics, except those that the client's metadata cache knows by
		// name. A request for authorised operations bypasses the cache.
		all, err = adm.ListTopics(kadm.WithAuthorizedOps(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", permission.Denied("DESCRIBE", "topic", t.dlq, err))
	}
	names := []string{t.dlq, t.ledger}
	for _, g := range append(slices.Clone(groups), "") { // of letters without a group
		for _, tier := range t.naming.TiersAmong(all.Names(), t.source, g) {
			names = append(names, tier.Topic)
		}
	}
	found := kadm.TopicDetails{}
	for _, name := range names {
		d, ok := all[name]
		switch {
		case !ok || errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		case d.Err != nil:
			return nil, fmt.Errorf("describe topic %q: %w", name, permission.Denied("DESCRIBE", "topic", name, d.Err))
		default:
			found[name] = d
		}
	}
	return found, nil
}

// retention returns the time for which a topic keeps records, and false if that is for ever.
func retention(configs map[string]string) (time.Duration, bool) {
	if policy, ok := configs["cleanup.policy"]; ok && !slices.Contains(strings.Split(policy, ","), "delete") {
		return 0, false
	}
	ms, err := strconv.ParseInt(configs["retention.ms"], 10, 64)
	return time.Duration(ms) * time.Millisecond, err == nil && ms >= 0
}
