package redrive

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Who raises a fence waits for brokers, and for nothing that will be the same in a minute.
func TestWhatPassesIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true}, // which the client does not call retryable
		{kerr.NotLeaderForPartition, true},
		{kerr.ConcurrentTransactions, true},
		{kerr.TopicAuthorizationFailed, false},
		{permission.Denied("WRITE", "topic", "orders", kerr.TopicAuthorizationFailed), false},
		{fmt.Errorf("%w: %w", errUncertain, kerr.ProducerFenced), false},
	} {
		if got := isPassing(fmt.Errorf("describe: %w", c.err)); got != c.want {
			t.Errorf("%v passes: %t, want %t", c.err, got, c.want)
		}
		if permission.IsUnsupported(c.err) {
			t.Errorf("%v is taken for a broker that is too old", c.err)
		}
	}
}
