package txn

import (
	"context"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Who raises a fence waits for brokers, and for nothing that will be the same in a minute.
func TestIsPassing_IsWhatAFenceWaitsFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		// which the client does not call retryable
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{kerr.NotLeaderForPartition, true},
		{kerr.ConcurrentTransactions, true},
		{kerr.TopicAuthorizationFailed, false},
		{permission.Denied("WRITE", "topic", "orders", kerr.TopicAuthorizationFailed), false},
		{fmt.Errorf("%w: %w", ErrUncertain, kerr.ProducerFenced), false},
	} {
		if got := isPassing(fmt.Errorf("describe: %w", c.err)); got != c.want {
			t.Errorf("%v passes: %t, want %t", c.err, got, c.want)
		}
		if permission.IsUnsupported(c.err) {
			t.Errorf("%v is taken for a broker that is too old", c.err)
		}
	}
}

// The open transactions of a broker that is down would be aborted without a check.
func TestIDFence_TakesNoSilentBrokerForAnOldOne(t *testing.T) {
	t.Parallel()
	cl, err := kgo.NewClient(kgo.SeedBrokers("localhost:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f := (&idFence{adm: kadm.NewClient(cl)}); f.tooOld(ctx, io.EOF) {
		t.Error("a broker that cannot be asked is taken for one that does not know the request")
	}
}

// A process that is frozen has tried nothing meanwhile.
func TestPatience_IsNotSpentAsleep(t *testing.T) {
	t.Parallel()
	left := patience(fencePatience)
	left.spend(time.Hour)
	if want := patience(fencePatience - fenceRound); left != want {
		t.Errorf("after a round within which it slept for an hour %v are left, want %v", time.Duration(left), time.Duration(want))
	}
	for range 25 {
		left.spend(time.Second)
	}
	if left > 0 {
		t.Errorf("%v are left after it was awake for so long", time.Duration(left))
	}
}
