package retrytopics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Topic configs that Ensure sets or compares.
const (
	cleanupPolicy   = "cleanup.policy"
	retentionMS     = "retention.ms"
	retentionBytes  = "retention.bytes"
	segmentMS       = "segment.ms"
	minISR          = "min.insync.replicas"
	uncleanElection = "unclean.leader.election.enable"
	timestampType   = "message.timestamp.type"
	maxMessage      = "max.message.bytes"

	// replicationFactor is no topic config, but reports name it like one.
	replicationFactor = "replication.factor"
)

// wayOut says how to leave out the config for which a cluster refused to create the topic, if it
// was for one. The broker's message names it.
func wayOut(configs map[string]string, err error, message string) string {
	if !errors.Is(err, kerr.PolicyViolation) && !errors.Is(err, kerr.InvalidConfig) {
		return ""
	}
	if strings.Contains(message, retentionMS) {
		return "; set TierRetention and DLQRetention to what it allows"
	}
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(configs)), func(config string) bool {
		return config == retentionMS || config == retentionBytes || config == cleanupPolicy
	})
	named := slices.DeleteFunc(slices.Clone(own), func(config string) bool { return !strings.Contains(message, config) })
	if len(named) == 0 {
		return fmt.Sprintf("; if it is one of the configs %s, give it the value nil in Spec.Configs (a consumer's Provision.Configs), which leaves it out", strings.Join(own, ", "))
	}
	return fmt.Sprintf("; to leave %s out, give it the value nil in Spec.Configs (a consumer's Provision.Configs)", strings.Join(named, ", "))
}
