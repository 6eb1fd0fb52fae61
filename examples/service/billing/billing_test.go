package billing

import (
	"context"
	"errors"
	"testing"

	"github.com/sidingkafka/siding/classify"
)

type gateway func() error

func (g gateway) Charge(context.Context, string, string, int) error { return g() }

// The domain's tests need no broker: the meaning of an error is a value like any other.
func TestErrorsSayWhatTheyMean(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		order   Order
		err     error
		verdict classify.Verdict
		class   string
	}{
		"busy":    {Order{ID: "7", Cents: 100}, ErrBusy, classify.VerdictRetry, "payment.busy"},
		"refused": {Order{ID: "7", Cents: 100}, ErrRefused, classify.VerdictTerminal, "payment.refused"},
		"free":    {Order{ID: "7"}, nil, classify.VerdictDiscard, classify.ClassUnclassified},
		"timeout": {Order{ID: "7", Cents: 100}, context.DeadlineExceeded, classify.VerdictRetry, classify.ClassTimeout},
		"unknown": {Order{ID: "7", Cents: 100}, errors.New("what is this?"), classify.VerdictTerminal, classify.ClassUnclassified},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Service{Gateway: gateway(func() error { return test.err })}
			got := new(classify.Classifier).Classify(s.Charge(t.Context(), "key", test.order))
			if got.Verdict != test.verdict || got.Class != test.class {
				t.Errorf("got %v %s, want %v %s", got.Verdict, got.Class, test.verdict, test.class)
			}
		})
	}
	if err := (&Service{Gateway: gateway(func() error { return nil })}).Charge(t.Context(), "key", Order{Cents: 100}); err != nil {
		t.Errorf("a charge that works is the error %v", err)
	}
}
