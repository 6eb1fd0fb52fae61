package classify

import (
	"fmt"
	"testing"
)

// If a whole topic fails, every record is classified: only the fingerprint may allocate. Not
// parallel: AllocsPerRun counts the process.
func TestClassifyAllocatesTheFingerprintOnly(t *testing.T) {
	err := As(Retryable(fmt.Errorf("charge order 83127: %w", errBare)), "payment.busy")
	c := &Classifier{Rules: []Rule{Is(errBare, VerdictRetry, "bare"), Type[*skuError](VerdictRetry, "sku")}}
	if got := testing.AllocsPerRun(100, func() { sink = c.Classify(err) }); got > 1 {
		t.Errorf("%v allocations, want 1", got)
	}
	plain := fmt.Errorf("order 7: %w", &skuError{1})
	if got := testing.AllocsPerRun(100, func() { sink = new(Classifier).Classify(plain) }); got > 1 {
		t.Errorf("%v allocations for a typed error, want 1", got)
	}
}
