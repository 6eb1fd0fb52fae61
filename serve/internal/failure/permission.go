package failure

import (
	"context"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive"
)

// Lacks returns a *redrive.DeniedError for each operation on a topic that the user may not perform;
// none if the brokers do not say.
func Lacks(ctx context.Context, needs map[string][]string, opts ...kgo.Opt) (all []error) {
	cl, err := client.New(opts...)
	if err != nil {
		return nil
	}
	defer cl.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for name := range needs {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil
	}
	for _, t := range resp.Topics {
		hidden := t.ErrorCode == kerr.TopicAuthorizationFailed.Code
		if t.Topic == nil || !hidden && (t.ErrorCode != 0 || t.AuthorizedOperations == math.MinInt32) {
			continue
		}
		may := kadm.DecodeACLOperations(t.AuthorizedOperations)
		for _, op := range needs[*t.Topic] {
			if hidden || !slices.ContainsFunc(may, func(m kmsg.ACLOperation) bool { return m.String() == op }) {
				all = append(all, &redrive.DeniedError{Operation: op, Resource: "topic", Name: *t.Topic})
			}
		}
	}
	return all
}
