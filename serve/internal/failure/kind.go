package failure

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/pulse"
)

// Errors that package serve exports.
var (
	ErrNoLedger        = errors.New("has no ledger")
	ErrNoRetention     = errors.New("the configuration sets no retention on the topic: topics[].retention does")
	ErrRetentionGoesOn = errors.New("another retention of the topic goes on")
)

// kinds has the kind of problem for each error that has one of its own. The first row that an error
// wraps counts; a timeout of the network counts as the deadline of a context.
var kinds = []struct {
	err  error
	kind api.Kind
}{
	{kerr.TopicAuthorizationFailed, api.KafkaDenied},
	{kerr.GroupAuthorizationFailed, api.KafkaDenied},
	{kerr.TransactionalIDAuthorizationFailed, api.KafkaDenied},
	{kerr.ClusterAuthorizationFailed, api.KafkaDenied},
	{ErrNoRetention, api.NoRetention},
	{ErrRetentionGoesOn, api.Timeout},
	{pulse.ErrSilent, api.Timeout},
	{context.DeadlineExceeded, api.Timeout},
	{kerr.RequestTimedOut, api.Timeout},
	{kgo.ErrRecordTimeout, api.Timeout},
	{redrive.ErrNoRun, api.NoRun},
	{redrive.ErrTaken, api.RunHeld},
	{redrive.ErrTopicRecreated, api.TopicWasRecreated},
	{dlq.ErrNoLetter, api.NoLetter},
	{dlq.ErrNoTopic, api.NoTopic},
	{dlq.ErrUnfinishedRun, api.UnfinishedRun},
	{dlq.ErrChanged, api.Changed},
	{ErrNoLedger, api.NoLedger},
	{dlq.ErrNewerVersion, api.NewerVersion},
}

// KindOf returns the kind of problem that an error is: [api.Kafka] if it has none of its own.
func KindOf(err error) api.Kind {
	if r, ok := errors.AsType[*redrive.RefusedError](err); ok {
		return api.Kind(strings.ReplaceAll(string(r.Reason), " ", "-"))
	}
	if _, ok := errors.AsType[*redrive.DeniedError](err); ok {
		return api.KafkaDenied
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		err = errors.Join(err, context.DeadlineExceeded)
	}
	for _, row := range kinds {
		if errors.Is(err, row.err) {
			return row.kind
		}
	}
	return api.Kafka
}

// IsDenial reports whether a broker refused something because the server's own user lacks a
// permission.
func IsDenial(err error) bool { return err != nil && KindOf(err) == api.KafkaDenied }
