package permission

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeniedError names a permission that the user lacks. Package redrive exports it.
type DeniedError struct {
	// Operation is the operation to grant, in the words of Kafka's tools: READ, WRITE, DESCRIBE, …
	Operation string
	// Resource is topic, group, transactional-id or cluster. Name is empty for the cluster only.
	Resource, Name string
	// Err is the broker's answer; nil if the permission was checked beforehand.
	Err error
}

// Error names the permission, and the command that grants it.
func (e *DeniedError) Error() string {
	if e.Resource == "cluster" {
		return fmt.Sprintf("not authorized: the user needs %s on the cluster: have it granted (kafka-acls.sh --add --allow-principal User:… --operation %s --cluster)",
			e.Operation, e.Operation)
	}
	return fmt.Sprintf("not authorized: the user needs %s on %s %s: have it granted (kafka-acls.sh --add --allow-principal User:… --operation %s --%s %s)",
		e.Operation, e.Resource, e.Name, e.Operation, e.Resource, e.Name)
}

// Unwrap returns Err.
func (e *DeniedError) Unwrap() error { return e.Err }

// Denied turns a broker's denial into a *DeniedError. It returns any other error unchanged.
func Denied(operation, resource, name string, err error) error {
	switch {
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		// The broker also denies it to an idempotent producer that may write to no topic at all.
		// Before Kafka 3.0 that producer needs IDEMPOTENT_WRITE.
		if operation != "WRITE" || resource != "topic" {
			resource = "cluster"
		}
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
	default:
		return err
	}
	if _, known := errors.AsType[*DeniedError](err); known {
		return err
	}
	return &DeniedError{Operation: operation, Resource: resource, Name: name, Err: err}
}

// Lacking joins all permissions that errors name, each once and on a line of its own. It returns
// nil if the errors name none.
func Lacking(errs ...error) error {
	var all []error
	seen := map[[3]string]bool{}
	for _, err := range errs {
		for _, d := range deniedIn(err) {
			if key := [3]string{d.Operation, d.Resource, d.Name}; !seen[key] {
				seen[key] = true
				all = append(all, d)
			}
		}
	}
	return errors.Join(all...)
}

// deniedIn finds all permissions that an error names; errors.As would find the first.
func deniedIn(err error) (all []*DeniedError) {
	if d, ok := err.(*DeniedError); ok { //nolint:errorlint // the switch below unwraps
		return []*DeniedError{d}
	}
	switch err := err.(type) { //nolint:errorlint // the same
	case interface{ Unwrap() error }:
		return deniedIn(err.Unwrap())
	case interface{ Unwrap() []error }:
		for _, e := range err.Unwrap() {
			all = append(all, deniedIn(e)...)
		}
	}
	return all
}

// Check asks a broker whether the user may perform the operations that needs lists by topic, in the
// words of [DeniedError]. Its error has a *DeniedError, on a line of its own, for each missing
// permission. Brokers before Kafka 2.3 do not report permissions, and deny the operation later.
func Check(ctx context.Context, cl *kgo.Client, needs map[string][]string) error {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for topic := range needs {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return fmt.Errorf("describe topics: %w", err)
	}
	var errs []error
	slices.SortFunc(resp.Topics, func(a, b kmsg.MetadataResponseTopic) int { return strings.Compare(*a.Topic, *b.Topic) })
	for _, t := range resp.Topics {
		may := kadm.DecodeACLOperations(t.AuthorizedOperations)
		for _, op := range needs[*t.Topic] {
			reported := t.ErrorCode == 0 && t.AuthorizedOperations != math.MinInt32
			if t.ErrorCode == kerr.TopicAuthorizationFailed.Code || reported && !slices.ContainsFunc(may, func(m kmsg.ACLOperation) bool { return m.String() == op }) {
				errs = append(errs, &DeniedError{Operation: op, Resource: "topic", Name: *t.Topic})
			}
		}
	}
	return errors.Join(errs...)
}

// IsUnsupported reports whether an error means that a broker is too old for a request. The client
// does not export most errors with that meaning, so IsUnsupported excludes all other causes.
func IsUnsupported(err error) bool {
	if _, known := errors.AsType[*kerr.Error](err); known {
		return errors.Is(err, kerr.UnsupportedVersion)
	}
	// the client does not count a refused connection as retryable
	if _, refused := errors.AsType[*net.OpError](err); refused {
		return false
	}
	return err != nil && !kgo.IsRetryableBrokerErr(err) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// IsDenied reports whether the user may not write to a topic or under a transactional id. A retry
// does not help, because the permission has to be granted.
func IsDenied(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.TransactionalIDAuthorizationFailed)
}
