package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// topicStats is what the brokers know of a topic, without reading it. A part that is not known is
// nil, not zero.
type topicStats struct {
	total, recent any            // numbers
	oldest        time.Time      // when the first record was appended; zero where there is none
	retention     *time.Duration // negative: for ever
	gone          bool           // brokers do not know the topic
	compacted     bool
}

// readTopicStats asks for all the topics at once. Each part that is not known has a problem.
func readTopicStats(ctx context.Context, s *cli.Session, topics []string, now time.Time) (map[string]topicStats, []error) {
	if len(topics) == 0 {
		return nil, nil
	}
	var problems []error
	starts, err1 := s.Admin.ListStartOffsets(ctx, topics...)
	ends, err2 := s.Admin.ListEndOffsets(ctx, topics...)
	hourAgo, err3 := s.Admin.ListOffsetsAfterMilli(ctx, now.Add(-time.Hour).UnixMilli(), topics...)
	first, err4 := s.Admin.ListOffsetsAfterMilli(ctx, 0, topics...)
	why := cmp.Or(err1, err2, err3, err4) // offsets are missing
	configs, configErr := s.Admin.DescribeTopicConfigs(ctx, topics...)

	found := make(map[string]topicStats, len(topics))
	for _, topic := range topics {
		var st topicStats
		total, err := between(topic, starts, ends, why)
		recent, err2 := between(topic, hourAgo, ends, why)
		offsetsErr := cmp.Or(err, err2)
		retention, retentionErr := retentionOf(configs, configErr, topic)
		if st.gone = isUnknownTopic(offsetsErr) || isUnknownTopic(retentionErr); st.gone {
			// once, and not as a lack of each part
			problems = append(problems, unknownTopic(topic))
			found[topic] = st
			continue
		}
		if offsetsErr != nil {
			problems = append(problems, cli.OnTopic("DESCRIBE", topic, offsetsErr))
		} else {
			st.total, st.recent = total, recent
		}
		for _, o := range first[topic] {
			if at := time.UnixMilli(o.Timestamp); o.Err == nil && o.Timestamp >= 0 && (st.oldest.IsZero() || at.Before(st.oldest)) {
				st.oldest = at
			}
		}
		if st.retention = retention; retentionErr != nil {
			problems = append(problems, cli.OnTopic("DESCRIBE_CONFIGS", topic, retentionErr))
		}
		st.compacted = configErr == nil && subject.IsCompacted(configs, topic)
		found[topic] = st
	}
	return found, problems
}

func isUnknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, dlq.ErrNoTopic)
}

func unknownTopic(topic string) error {
	return fmt.Errorf("topic %s is unknown to the brokers: it was deleted or created just now", topic)
}

// between adds up, over a topic's partitions, the distance of two offsets. Where offsets are
// missing the error is why, if that is known.
func between(topic string, from, to kadm.ListedOffsets, why error) (int64, error) {
	if why == nil {
		why = errors.New("its offsets are not known")
	}
	if len(to[topic]) == 0 {
		return 0, why
	}
	var sum int64
	for p, end := range to[topic] {
		start, ok := from.Lookup(topic, p)
		switch {
		case end.Err != nil:
			return 0, end.Err
		case !ok:
			return 0, fmt.Errorf("partition %d: %w", p, why)
		case start.Err != nil:
			return 0, start.Err
		}
		// The start was asked for separately and may be newer than the end.
		sum += max(0, end.Offset-start.Offset)
	}
	return sum, nil
}

func retentionOf(configs kadm.ResourceConfigs, err error, topic string) (*time.Duration, error) {
	if err != nil {
		return nil, err
	}
	text, err := subject.Setting(configs, topic, "retention.ms")
	if err != nil || text == "" {
		return nil, err
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("retention.ms: %w", err)
	}
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	d := time.Duration(min(ms, longest)) * time.Millisecond
	return &d, nil
}

// kept is how long retention keeps a letter: -1 in JSON where there is no limit, as in Kafka.
func (s topicStats) kept() any {
	switch {
	case s.retention == nil:
		return nil
	case *s.retention < 0:
		return output.Pair{Table: "for ever", JSON: -1}
	}
	return *s.retention
}

// expiry is when retention may delete the oldest letter.
func (s topicStats) expiry(now time.Time) any {
	if s.retention == nil || *s.retention < 0 || s.oldest.IsZero() {
		return nil
	}
	at := s.oldest.Add(*s.retention)
	if at.Before(s.oldest) {
		return nil // beyond what a time.Time can count
	}
	if at.Before(now) {
		at = now
	}
	return output.Ago(at)
}
