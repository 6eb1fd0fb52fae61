package classify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

var sink Result

// BenchmarkClassify uses the errors of a topic that fails as a whole, where the classifier runs
// once per record. The goal is 500 ns for a sentinel that is wrapped and named.
func BenchmarkClassify(b *testing.B) {
	busy := errors.New("payment provider is busy")
	for _, bm := range []struct {
		name string
		err  error
	}{
		{"named sentinel", As(Retryable(fmt.Errorf("charge order 83127: %w", busy)), "payment.busy")},
		{"bare", busy},
		{"typed", fmt.Errorf("order 7: %w", &skuError{4})},
		{"timeout", fmt.Errorf("order 7: %w", context.DeadlineExceeded)},
		{"http", fmt.Errorf("order 7: %w", httpError{code: 503})},
		{"grpc", fmt.Errorf("order 7: %w", &grpcError{&grpcStatus{14}})},
		{"refused", &url.Error{Op: "Get", URL: "http://10.0.0.1:80/", Err: &net.OpError{
			Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
		}}},
		{"joined", errors.Join(busy, busy, &skuError{4})},
		{"long message", errors.New(strings.Repeat("key (id)=(4711) already exists ", 40))},
	} {
		b.Run(bm.name, func(b *testing.B) {
			c := &Classifier{}
			b.ReportAllocs()
			for b.Loop() {
				sink = c.Classify(bm.err)
			}
		})
	}
	b.Run("ten rules", func(b *testing.B) {
		c := &Classifier{}
		for i := range 9 {
			c.Rules = append(c.Rules, Is(fmt.Errorf("other %d", i), VerdictRetry, "other"))
		}
		c.Rules = append(c.Rules, Is(busy, VerdictRetry, "payment.busy"))
		err := fmt.Errorf("charge order 83127: %w", busy)
		b.ReportAllocs()
		for b.Loop() {
			sink = c.Classify(err)
		}
	})
}

func BenchmarkFingerprint(b *testing.B) {
	message := `order 7: POST "https://pay.example/v1/charges": 3f2504e0-4f89-11d3-9a0c-0305e82c3301 refused after 1m30.5s`
	b.ReportAllocs()
	for b.Loop() {
		sink.Fingerprint = fingerprint("payment.busy", message, "")
	}
}
