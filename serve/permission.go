package serve

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive"
)

// isDenial reports whether a broker refused something because the server's own user lacks a
// permission.
func isDenial(err error) bool {
	if _, named := errors.AsType[*redrive.DeniedError](err); named {
		return true
	}
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.GroupAuthorizationFailed) ||
		errors.Is(err, kerr.TransactionalIDAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// denied adds to an error what the server's own user lacks on a topic, if it is a broker's denial.
// A broker says of which topic it denied something, and not what: so it is asked for all that the
// server does there. Another error stays as it is, and so does a denial that cannot be explained.
func (s *Server) denied(ctx context.Context, t *topic, err error) error {
	if _, named := errors.AsType[*redrive.DeniedError](err); named || !isDenial(err) {
		return err
	}
	name := t.DeadLetterTopic.Topic
	needs := map[string][]string{name: {"READ"}, t.Ledger: {"READ", "WRITE"}}
	if t.config.Retention != nil {
		needs[name] = append(needs[name], "DELETE")
	}
	if lacks := s.lacks(ctx, needs); len(lacks) > 0 {
		return errors.Join(append(lacks, err)...)
	}
	return err
}

// lacks returns a *redrive.DeniedError for each operation on a topic that the user may not perform;
// none if the brokers do not say.
func (s *Server) lacks(ctx context.Context, needs map[string][]string) (all []error) {
	cl, err := client.New(s.cfg.Kafka...)
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
