package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// parseRun reads topic/id, as run and runs print it.
func parseRun(s string) (topic, id string, err error) {
	i := strings.LastIndexByte(s, '/')
	if i <= 0 || i == len(s)-1 {
		return "", "", fmt.Errorf("%q is not a run such as orders.dlq/20260102-150405-a1b2c3: redrive runs TOPIC lists them", s)
	}
	return s[:i], s[i+1:], nil
}

// onRun does something with the run that the user named, unless the flags are wrong.
func onRun(ctx context.Context, t *cli.Tool, name string, do func(ctx context.Context, r *redrive.Redriver, topic, id string) error, wrong error) error {
	topic, id, err := parseRun(name)
	return t.With(ctx, func(s *cli.Session) error {
		if _, err := subject.FindTopic(ctx, s, topic); err != nil {
			return err
		}
		r, err := s.Redriver()
		if err != nil {
			return err
		}
		err = do(ctx, r, topic, id)
		if errors.Is(err, redrive.ErrNoRun) {
			err = fmt.Errorf("%w: redrive runs %s lists the runs that there are", err, topic)
		}
		return err
	}, err, wrong)
}
