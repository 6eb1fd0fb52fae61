package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/retrytopics"
)

// provision sees to the siblings of the topics as Config.Provision says, and learns the topics' ids.
func (c *Consumer) provision(ctx context.Context, topics []string) error {
	all := make([]retrytopics.Siblings, 0, len(topics))
	for _, t := range topics {
		all = append(all, c.siblings[t])
	}
	report, err := retrytopics.Ensure(ctx, c.admin, c.cfg.Provision, all...)
	if len(report.Created) > 0 || len(report.Grown) > 0 || len(report.Differences) > 0 {
		c.throttle.once("report "+report.String(), time.Hour, func() { c.log.Info("siding: siblings provisioned", "report", report.String()) })
	}
	if err != nil {
		return err
	}
	c.loadBatchLimits(ctx, all)
	details, err := c.admin.ListTopics(ctx, topics...)
	if err != nil {
		return fmt.Errorf("metadata of the source topics: %w", err)
	}
	var missing []error
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range topics {
		d, ok := details[t]
		switch {
		case !ok || errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			missing = append(missing, fmt.Errorf("topic %q does not exist: create it, or take it out of Topics", t))
		case d.Err != nil:
			missing = append(missing, fmt.Errorf("topic %q: %w", t, d.Err))
		default:
			c.ids[t] = d.ID
		}
	}
	return errors.Join(missing...)
}

// transient reports whether an error at the start may pass by itself: a broker that is not there yet, a leader election.
func transient(err error) bool {
	var undone *retrytopics.UndoneError
	if errors.As(err, &undone) {
		return false
	}
	var code *kerr.Error
	if errors.As(err, &code) {
		return code.Retriable && !errors.Is(err, kerr.UnknownTopicOrPartition)
	}
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}
