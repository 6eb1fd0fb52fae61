package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
)

// Why a commit was not sent, was refused, or is not answered.

// unsentError is why a commit was not sent.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// isUnanswered reports whether a commit was sent, and it is not known whether a broker has accepted
// it, or may yet. A commit that was refused while the member joins counts too, to be safe.
func isUnanswered(err error) bool { return isPending(err) && !errors.As(err, new(unsentError)) }

// isPending reports whether a commit failed as no broker answers, or the member joins.
func isPending(err error) bool {
	return err != nil && (!errors.As(err, new(*kerr.Error)) || errors.Is(err, kerr.RebalanceInProgress))
}

// errSentBySiding ends kgo's part of a commit: siding sends the request that kgo has built.
var errSentBySiding = errors.New("sent by siding")

// staleTries is how often a commit is sent under KIP-848 whose epoch was stale.
const staleTries = 10

// isStale reports whether the broker refused a request for its epoch.
func isStale(resp *kmsg.OffsetCommitResponse) bool {
	return slices.ContainsFunc(resp.Topics, func(t kmsg.OffsetCommitResponseTopic) bool {
		return slices.ContainsFunc(t.Partitions, func(p kmsg.OffsetCommitResponseTopicPartition) bool {
			return p.ErrorCode == kerr.StaleMemberEpoch.Code
		})
	})
}

// refresh waits until the member has a newer epoch than the request, and puts it in. It reports
// false if none comes.
func refresh(ctx context.Context, group *kgo.Client, req *kmsg.OffsetCommitRequest) bool {
	for wait := 10 * time.Millisecond; wait < time.Second; wait *= 2 {
		if !backoff.Wait(ctx, wait) {
			return false
		}
		if member, epoch := group.GroupMetadata(); epoch > req.Generation && member != "" {
			req.MemberID, req.Generation = member, epoch
			return true
		}
	}
	return false
}

// joinFew joins the first few errors: a thousand partitions fail for the same reason.
func joinFew(all []error) error {
	const some = 3
	if len(all) > some {
		all = append(all[:some:some], fmt.Errorf("and %d more", len(all)-some))
	}
	return errors.Join(all...)
}
