package retrytopics

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// topic is a topic of the cluster.
type topic struct {
	partitions int32
	replicas   int16
	led        int32 // partitions that have a leader
	configs    map[string]string
}

// number returns the value of a numeric config.
func (t *topic) number(config string) (int64, bool) {
	n, err := strconv.ParseInt(t.configs[config], 10, 64)
	return n, err == nil
}

// describe returns the topics that exist, without their configs.
func describe(ctx context.Context, adm *kadm.Client, names []string) (map[string]*topic, error) {
	// kadm answers from a cache that is seconds old, unless the authorized operations are requested
	// too.
	ctx = kadm.WithAuthorizedOps(ctx)
	m, err := adm.Metadata(ctx, names...)
	if err != nil {
		return nil, denied(err, "describe topics", "DESCRIBE", names, func(name string) error {
			_, err := adm.Metadata(ctx, name)
			return err
		})
	}
	found := make(map[string]*topic, len(names))
	var errs []error
	for _, name := range names {
		d, ok := m.Topics[name]
		switch {
		case !ok || errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		case d.Err != nil:
			errs = append(errs, fmt.Errorf("describe topic %q: %w", name, d.Err))
		default:
			t := &topic{partitions: int32(len(d.Partitions)), replicas: int16(d.Partitions.NumReplicas())}
			for _, p := range d.Partitions {
				// A moving partition has replicas on both sides.
				t.replicas = max(1, min(t.replicas, int16(len(p.Replicas))))
				if p.Leader >= 0 && p.Err == nil {
					t.led++
				}
			}
			found[name] = t
		}
	}
	return found, errors.Join(errs...)
}

// knownTimeout bounds the wait until the broker that is asked knows a topic that another broker has
// created, or has shown. It learns of a new topic within moments, unless it is overloaded; and the
// topic may not exist.
const knownTimeout = 10 * time.Second

// untilKnown asks until the topics are known, for knownTimeout at most. It returns the error of the
// last answer.
func untilKnown(ctx context.Context, ask func() (known bool, err error)) error {
	wait, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		known, err := ask()
		if known || sleep(wait, pause) != nil {
			return err
		}
	}
}

// describeConfigs adds the configs to topics that exist.
func describeConfigs(ctx context.Context, adm *kadm.Client, topics map[string]*topic, names []string) error {
	return untilKnown(ctx, func() (known bool, err error) {
		err = describeConfigsOnce(ctx, adm, topics, names)
		return !errors.Is(err, kerr.UnknownTopicOrPartition), err
	})
}

func describeConfigsOnce(ctx context.Context, adm *kadm.Client, topics map[string]*topic, names []string) error {
	rs, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return denied(err, "describe topic configs", "DESCRIBE_CONFIGS", names, func(name string) error {
			_, err := adm.DescribeTopicConfigs(ctx, name)
			return err
		})
	}
	var errs []error
	for _, name := range names {
		r, err := rs.On(name, nil)
		if err == nil {
			err = r.Err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("describe configs of topic %q: %w", name, withMessage(err, r.ErrMessage)))
			continue
		}
		configs := make(map[string]string, len(r.Configs))
		for _, c := range r.Configs {
			if c.Value != nil {
				configs[c.Key] = *c.Value
			}
		}
		topics[name].configs = configs
	}
	return errors.Join(errs...)
}

// denied names the operation that failed. If a permission was missing, it names the permission and
// the topics: kadm stops at the first refusal without naming its topic, so denied asks for each
// topic by itself.
func denied(err error, op, operation string, names []string, ask func(string) error) error {
	if _, ok := errors.AsType[*kadm.AuthError](err); !ok {
		return fmt.Errorf("%s: %w", op, err)
	}
	var refused []string
	for _, name := range names {
		if _, ok := errors.AsType[*kadm.AuthError](ask(name)); ok {
			refused = append(refused, name)
		}
	}
	if len(refused) == 0 {
		refused = names // granted meanwhile, or denied by the cluster
	}
	return fmt.Errorf("%s %q: grant the operation %s on them: %w", op, refused, operation, err)
}

func withMessage(err error, message string) error {
	if message == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, message)
}
