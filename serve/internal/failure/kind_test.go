package failure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
)

// Errors of a request were answered as if brokers had failed, and silence as if they had answered.
// Each row of the table counts, however deep an error wraps it, and all kinds have a status.
func TestKindOf_EachErrorHasItsKind(t *testing.T) {
	t.Parallel()
	check := func(err error, want api.Kind) {
		t.Helper()
		for _, err := range []error{err, fmt.Errorf("dlq: %w", err), errors.Join(errors.New("another"), err)} {
			if got := KindOf(err); got != want {
				t.Errorf("%v is %q, want %q", err, got, want)
			}
		}
		if api.Statuses()[want] == 0 {
			t.Errorf("%q has no status", want)
		}
		if got, want := IsDenial(err), want == api.KafkaDenied; got != want {
			t.Errorf("%v is a denial: %v", err, got)
		}
	}
	for _, row := range kinds {
		check(row.err, row.kind)
	}
	check(&redrive.RefusedError{Reason: redrive.RefusedTarget}, api.NoTarget)
	check(&redrive.DeniedError{Operation: "READ", Resource: "topic", Name: "orders.dlq"}, api.KafkaDenied)
	check(&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, api.Timeout)
	check(&net.DNSError{IsTimeout: true}, api.Timeout)
	check(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, api.Kafka)
	check(kerr.BrokerNotAvailable, api.Kafka)
	// A denial is what an operator can mend, and waiting longer does not help.
	check(errors.Join(context.DeadlineExceeded, kerr.TopicAuthorizationFailed), api.KafkaDenied)
	if IsDenial(nil) {
		t.Error("nil is a denial")
	}
}
