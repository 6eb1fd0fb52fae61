package watch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/duration"
	"github.com/sidingkafka/siding/serve/internal/failure"
)

// brokerConfig is what the brokers' configuration of a dead-letter topic and of its ledger means.
type brokerConfig struct {
	// retention is how long the topic keeps letters; zero if for ever, or if that was never known.
	retention time.Duration
	unknown   error // why it is not known; nil if it is
	// forgets says that the ledger loses entries while the topic has their letters: letters that
	// came home would be open again.
	forgets error
	// The brokers did not answer about the topic, and about one of both: what was known before
	// counts.
	unanswered, partly bool
}

// brokerConfigs returns the configurations of dead-letter topics by their names. A client of
// package kadm would give up at the first topic that is denied.
func brokerConfigs(ctx context.Context, cl *kgo.Client, topics []redrive.DeadLetterTopic) (map[string]brokerConfig, error) {
	all := map[string]brokerConfig{}
	if len(topics) == 0 {
		return all, nil
	}
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, t := range topics {
		for _, name := range []string{t.Topic, t.Ledger} {
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, name, []string{"cleanup.policy", "retention.bytes", "retention.ms"}
			req.Resources = append(req.Resources, r)
		}
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("describe the configs of dead-letter topics: %w", err)
	}
	values, failed := map[string]map[string]string{}, map[string]error{}
	for _, r := range resp.Resources {
		of := map[string]string{}
		for _, c := range r.Configs {
			if c.Value != nil {
				of[c.Name] = *c.Value
			}
		}
		values[r.ResourceName], failed[r.ResourceName] = of, kerr.ErrorForCode(r.ErrorCode)
	}
	for _, t := range topics {
		c := brokerConfig{retention: keeps(values[t.Topic]), unanswered: failed[t.Topic] != nil}
		if err := failed[t.Topic]; failure.IsDenial(err) {
			c.unknown = &redrive.DeniedError{Operation: "DESCRIBE_CONFIGS", Resource: "topic", Name: t.Topic, Err: err}
		}
		if c.partly = c.unanswered || failed[t.Ledger] != nil; !c.partly {
			c.forgets = forgets(&t, values[t.Ledger], c.retention)
		}
		all[t.Topic] = c
	}
	return all, nil
}

// keeps returns how long a topic keeps records by their age; zero if for ever.
func keeps(config map[string]string) time.Duration {
	ms, _ := strconv.ParseInt(config["retention.ms"], 10, 64)
	if ms <= 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// forgets returns an error if a ledger deletes entries before the letters, which are kept for some
// time; zero is for ever.
func forgets(t *redrive.DeadLetterTopic, ledger map[string]string, letters time.Duration) error {
	if !slices.Contains(strings.Split(ledger["cleanup.policy"], ","), "delete") {
		return nil
	}
	problem := ""
	entries := keeps(ledger)
	switch bytes, err := strconv.ParseInt(ledger["retention.bytes"], 10, 64); {
	case err == nil && bytes >= 0:
		problem = fmt.Sprintf("it keeps %d bytes of a partition (retention.bytes)", bytes)
	case entries == 0 || letters > 0 && entries >= letters:
		return nil
	case letters == 0:
		problem = fmt.Sprintf("it keeps entries for %s (retention.ms), and %s keeps letters for ever", duration.Short(entries), t.Topic)
	default:
		problem = fmt.Sprintf("it keeps entries for %s (retention.ms), and %s keeps letters for %s", duration.Short(entries), t.Topic, duration.Short(letters))
	}
	return fmt.Errorf("the ledger %s forgets what became of letters: %s, so letters that came home will be open again, and no rule redrives: "+
		"set its cleanup.policy to compact alone", t.Ledger, problem)
}
