package redrive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeniedError says which right the user lacks.
type DeniedError struct {
	// Operation is what must be granted, as Kafka's tools call it: READ, WRITE, DESCRIBE, …
	Operation string
	// Resource is topic, group, transactional-id or cluster, and Name which one.
	Resource, Name string
	// Err is what the broker said, if it was asked to do it.
	Err error
}

// Error says what to have granted.
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

// Denied makes a *DeniedError of an error by which a broker says that the user may not do something; any other is returned as it is.
func Denied(operation, resource, name string, err error) error {
	switch {
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		// So a broker calls it, too, when an idempotent producer may write to no topic at all; before Kafka 3.0 it needs IDEMPOTENT_WRITE.
		if operation != "WRITE" || resource != "topic" {
			resource = "cluster"
		}
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
	default:
		return err
	}
	if _, said := errors.AsType[*DeniedError](err); said {
		return err
	}
	return &DeniedError{Operation: operation, Resource: resource, Name: name, Err: err}
}

// lacking are the rights that errors tell of, each once and a line each; nil where they tell of none.
func lacking(errs ...error) error {
	var all []error
	told := map[[3]string]bool{}
	for _, err := range errs {
		for _, d := range deniedIn(err) {
			if key := [3]string{d.Operation, d.Resource, d.Name}; !told[key] {
				told[key] = true
				all = append(all, d)
			}
		}
	}
	return errors.Join(all...)
}

// deniedIn finds the rights that an error tells of, as errors.As finds the first.
func deniedIn(err error) (all []*DeniedError) {
	if d, ok := err.(*DeniedError); ok { //nolint:errorlint // what it wraps is unwrapped here
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

// rights are the operations on topics that a run needs, as far as is known yet where its letters go.
func (p *Plan) rights(watched []string) map[string][]string {
	const read, write = "READ", "WRITE"
	needs := map[string][]string{p.topics.dlq: {read}, p.topics.ledger: {read, write}}
	for _, topic := range watched {
		if topic != p.topics.dlq && topic != p.topics.ledger {
			needs[topic] = []string{read}
		}
	}
	for topic := range p.elsewhere {
		needs[topic] = []string{read}
	}
	named := p.Selection.Target.Topic
	switch {
	case !p.toTier && p.elsewhere[named]:
		needs[named] = []string{"DESCRIBE_CONFIGS", read, write}
	case !p.toTier:
		needs[named] = []string{"DESCRIBE_CONFIGS", write}
	case named != "":
		needs[named] = []string{read, write}
	default:
		for tier := range p.Targets {
			needs[tier] = []string{read, write}
		}
	}
	return needs
}

// CheckRights asks whether the user may do on topics what is needed, before anything is
// done: operations by topic, as [DeniedError] names them. Its error has a *DeniedError
// for each that may not be, a line each. Brokers that don't tell (before Kafka 2.3)
// refuse later what they refuse.
func CheckRights(ctx context.Context, cl *kgo.Client, needs map[string][]string) error {
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
	lacks := func(topic, op string) {
		errs = append(errs, &DeniedError{Operation: op, Resource: "topic", Name: topic})
	}
	slices.SortFunc(resp.Topics, func(a, b kmsg.MetadataResponseTopic) int { return strings.Compare(*a.Topic, *b.Topic) })
	for _, t := range resp.Topics {
		may := kadm.DecodeACLOperations(t.AuthorizedOperations)
		for _, op := range needs[*t.Topic] {
			switch {
			case t.ErrorCode == kerr.TopicAuthorizationFailed.Code:
				lacks(*t.Topic, op)
			case t.ErrorCode == 0 && t.AuthorizedOperations != math.MinInt32 && !slices.ContainsFunc(may, func(m kmsg.ACLOperation) bool { return m.String() == op }):
				lacks(*t.Topic, op)
			}
		}
	}
	return errors.Join(errs...)
}

// checkRights looks whether a run may do all that it would. Before it is known where the letters go it says what is known.
func (p *Plan) checkRights(ctx context.Context, cl *kgo.Client) error {
	watched, err := p.topics.watched(ctx, kadm.NewClient(cl), slices.Collect(maps.Keys(p.ByGroup)))
	if err != nil {
		return err
	}
	p.watches(watched.Names())
	if err := errors.Join(CheckRights(ctx, cl, p.rights(watched.Names())), p.topics.checkIDs(ctx, cl)); err != nil {
		return err
	}
	if has, needs := len(watched[p.topics.ledger].Partitions), len(watched[p.topics.dlq].Partitions); has < needs {
		return &RefusedError{Topic: p.topics.dlq, Reason: RefusedPartitions, Detail: fmt.Sprintf(
			"the ledger %s has %d partitions, and %s has %d: grow the ledger to as many first", p.topics.ledger, has, p.topics.dlq, needs)}
	}
	return nil
}

// checkIDs looks whether the user may use the transactional ids of a run. To use them is to take the run from whoever has one, so it is
// asked where their coordinators are, which wants DESCRIBE: WRITE includes it, and who has it alone is refused by the claim.
func (t *topics) checkIDs(ctx context.Context, cl *kgo.Client) error {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType = 1 // of transactions
	req.CoordinatorKeys = []string{transactionalID(t.dlq, 0), transactionalID(t.dlq, 1)}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return fmt.Errorf("find the coordinators of transactional ids: %w", err)
	}
	var errs []error
	slices.SortFunc(resp.Coordinators, func(a, b kmsg.FindCoordinatorResponseCoordinator) int { return strings.Compare(a.Key, b.Key) })
	for _, c := range resp.Coordinators {
		if err := kerr.ErrorForCode(c.ErrorCode); errors.Is(err, kerr.TransactionalIDAuthorizationFailed) { // for any other the run waits
			errs = append(errs, Denied("WRITE", "transactional-id", c.Key, err))
		}
	}
	return errors.Join(errs...)
}

// allLacking is an error about rights with all others that are missing, as far as that can be known; any other is returned as it is.
func (p *Plan) allLacking(ctx context.Context, cl *kgo.Client, err error) error {
	if lacking(err) == nil {
		return err
	}
	return lacking(err, p.checkRights(ctx, cl))
}

// isUnsupported reports whether an error says that a broker is too old for a request. For most of that the client has errors that it
// does not export, so what else it may be is told apart.
func isUnsupported(err error) bool {
	if _, said := errors.AsType[*kerr.Error](err); said {
		return errors.Is(err, kerr.UnsupportedVersion)
	}
	if _, away := errors.AsType[*net.OpError](err); away { // which the client does not call retryable where nobody listens
		return false
	}
	return err != nil && !kgo.IsRetryableBrokerErr(err) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}
