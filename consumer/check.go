package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/capability"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/retrytopics"
)

// Finding is the state of a feature on a cluster. Why is the reason why it does not work, and Do
// the remedy; both are empty for a feature that works.
type Finding = capability.Finding

// The states of a feature: it works; it works, but for what Finding.Why says; it does not work; the
// cluster does not say.
const (
	FeatureWorks   = capability.Works
	FeatureLimited = capability.Limited
	FeatureLacking = capability.Lacking
	FeatureUnknown = capability.Unknown
)

// Check asks a cluster whether a configuration works there: which of the consumer's features the
// brokers allow, whether the sources and siblings are as the configuration wants them, and whether
// the user may read and write them. It only reads: it creates no topic and joins no group. Use it
// in a pipeline, before a rollout.
//
// Its error means that the configuration is invalid, or that the cluster cannot be asked.
func Check(ctx context.Context, cfg Config) ([]Finding, error) {
	cfg = cfg.withDefaults()
	siblings, err := cfg.validate()
	if err != nil {
		return nil, fmt.Errorf("consumer: invalid configuration:\n%w", err)
	}
	adm, err := client.NewAdmin(cfg.Kafka...)
	if err != nil {
		return nil, fmt.Errorf("consumer: check: %w", err)
	}
	defer adm.Close()
	_, found, err := capability.Ask(ctx, adm, false)
	if err != nil {
		return nil, fmt.Errorf("consumer: check: %w", err)
	}
	needs := map[string][]kmsg.ACLOperation{}
	for _, topic := range cfg.Topics {
		s := siblings[topic]
		found = append(found, checkSiblings(ctx, adm, cfg.Provision, s)...)
		needs[topic] = []kmsg.ACLOperation{kmsg.ACLOperationRead}
		needs[s.DLQ] = []kmsg.ACLOperation{kmsg.ACLOperationWrite}
		for _, tier := range s.Tiers {
			needs[tier.Topic] = []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationWrite}
		}
	}
	return append(found, checkTopicRights(ctx, adm, needs), checkGroupRights(ctx, adm, cfg.Group)), nil
}

// checkSiblings returns whether a source and its siblings are there, as the spec wants them.
func checkSiblings(ctx context.Context, adm *kadm.Client, spec retrytopics.Spec, s retrytopics.Siblings) []Finding {
	if spec.Mode == retrytopics.Off {
		return nil
	}
	creates := spec.Mode == retrytopics.Create
	spec.Mode = retrytopics.Verify
	report, err := retrytopics.Ensure(ctx, adm, spec, s)
	f := Finding{Feature: fmt.Sprintf("topic %s and its retry and dead-letter topics", s.Source), State: FeatureWorks}
	switch _, missing := errors.AsType[*retrytopics.ProvisionError](err); {
	case missing && creates:
		f.State, f.Why, f.Do = FeatureUnknown, "some do not exist yet, or are smaller than their source: "+err.Error(), "Run creates them, if the user may; or create them yourself"
	case err != nil:
		f.State, f.Why, f.Do = FeatureLacking, err.Error(), "mend what the error names"
	}
	all := []Finding{f}
	for _, d := range report.Differences {
		all = append(all, Finding{Feature: "settings of " + d.Topic, State: FeatureLimited, Why: d.String(), Do: d.Command()})
	}
	return all
}

// checkTopicRights returns whether the user may do with topics what the consumer does.
func checkTopicRights(ctx context.Context, adm *kadm.Client, needs map[string][]kmsg.ACLOperation) Finding {
	f := Finding{Feature: "the user may read and write the topics", State: FeatureWorks}
	var topics []string
	for topic := range needs {
		topics = append(topics, topic)
	}
	slices.Sort(topics)
	meta, err := adm.Metadata(kadm.WithAuthorizedOps(ctx), topics...)
	if err != nil {
		return Finding{Feature: f.Feature, State: FeatureUnknown, Why: err.Error(), Do: "ask again"}
	}
	var lacks, silent []string
	for _, topic := range topics {
		t := meta.Topics[topic]
		for _, op := range needs[topic] {
			switch {
			case errors.Is(t.Err, kerr.TopicAuthorizationFailed), t.Err == nil && len(t.AuthorizedOperations) > 0 && !slices.Contains(t.AuthorizedOperations, op):
				lacks = append(lacks, fmt.Sprintf("%s on topic %s", op, topic))
			case t.Err == nil && len(t.AuthorizedOperations) == 0:
				silent = append(silent, topic)
			}
		}
	}
	switch {
	case len(lacks) > 0:
		f.State, f.Why, f.Do = FeatureLacking, "the user lacks "+strings.Join(lacks, ", "), "have it granted"
	case len(silent) > 0:
		f.State, f.Why, f.Do = FeatureUnknown, "the brokers do not say what the user may do with "+strings.Join(slices.Compact(silent), ", "), "grant READ on sources, READ and WRITE on retry topics, and WRITE on dead-letter topics"
	}
	return f
}

// checkGroupRights returns whether the user may join the group.
func checkGroupRights(ctx context.Context, adm *kadm.Client, group string) Finding {
	f := Finding{Feature: "the user may join group " + group, State: FeatureWorks}
	described, err := adm.DescribeGroups(kadm.WithAuthorizedOps(ctx), group)
	if err == nil {
		err = described[group].Err
	}
	may := described[group].AuthorizedOperations
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed), err == nil && len(may) > 0 && !slices.Contains(may, kmsg.ACLOperationRead):
		f.State, f.Why, f.Do = FeatureLacking, "the user lacks READ on group "+group, "have it granted"
	case errors.Is(err, kerr.GroupIDNotFound):
		f.State, f.Why, f.Do = FeatureUnknown, "the group does not exist yet, so the brokers do not say what the user may do with it", "grant READ on the group"
	case err != nil:
		f.State, f.Why, f.Do = FeatureUnknown, err.Error(), "ask again"
	case len(may) == 0:
		f.State, f.Why, f.Do = FeatureUnknown, "the brokers do not say what the user may do with the group", "grant READ on the group"
	}
	return f
}
