package classify_test

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/sidingkafka/siding/classify"
)

var (
	errBusy  = errors.New("payment provider is busy")
	errStale = errors.New("superseded by a later order")
)

func show(r classify.Result) { fmt.Println(r.Verdict, r.Class) }

// A rule classifies the errors of the domain and its drivers, once for all handlers.
func ExampleClassifier_Classify() {
	c := &classify.Classifier{Rules: []classify.Rule{
		classify.Is(errBusy, classify.VerdictRetry, "payment.busy"),
	}}
	show(c.Classify(fmt.Errorf("order 7: %w", errBusy)))
	show(c.Classify(fmt.Errorf("order 7: %w", errStale)))
	// Output:
	// retry payment.busy
	// terminal unclassified
}

// An unknown error is terminal unless the classifier says otherwise.
func ExampleClassifier_unknown() {
	c := &classify.Classifier{Unknown: classify.VerdictRetry}
	r := c.Classify(errors.New("what is this?"))
	fmt.Println(r.Verdict, r.Default)
	// Output: retry true
}

// The fingerprint identifies the fault, not the record.
func ExampleResult_fingerprint() {
	var c classify.Classifier
	a := c.Classify(errors.New(`order 7: unknown SKU "A-1"`))
	b := c.Classify(errors.New(`order 83127: unknown SKU "zz top"`))
	fmt.Println(a.Fingerprint == b.Fingerprint)
	// Output: true
}

func ExampleRetryable() {
	err := classify.Retryable(fmt.Errorf("order 7: %w", errBusy))
	show(new(classify.Classifier).Classify(err))
	fmt.Println(err, errors.Is(err, errBusy))
	// Output:
	// retry unclassified
	// order 7: payment provider is busy true
}

func ExampleTerminal() {
	err := classify.Terminal(errors.New("order 7: no such customer"))
	show(new(classify.Classifier).Classify(err))
	// Output: terminal unclassified
}

func ExampleDiscard() {
	err := classify.Discard(errStale)
	show(new(classify.Classifier).Classify(err))
	// Output: discard unclassified
}

func ExampleRetryAfter() {
	err := classify.RetryAfter(errBusy, 30*time.Second)
	r := new(classify.Classifier).Classify(err)
	fmt.Println(r.Verdict, r.RetryAfter)
	// Output: retry 30s
}

// Verdict and class are independent, so an error with a verdict can be given a class.
func ExampleAs() {
	err := classify.As(classify.Retryable(errBusy), "payment.busy")
	show(new(classify.Classifier).Classify(err))
	// Output: retry payment.busy
}

func ExampleIs() {
	c := &classify.Classifier{Rules: []classify.Rule{
		classify.Is(sql.ErrTxDone, classify.VerdictRetry, "sql.tx-done"),
	}}
	show(c.Classify(fmt.Errorf("load order 7: %w", sql.ErrTxDone)))
	// Output: retry sql.tx-done
}

type limitError struct{ Limit int }

func (e *limitError) Error() string { return fmt.Sprintf("more than %d items", e.Limit) }

func ExampleType() {
	c := &classify.Classifier{Rules: []classify.Rule{
		classify.Type[*limitError](classify.VerdictTerminal, "orders.limit"),
	}}
	show(c.Classify(fmt.Errorf("order 7: %w", &limitError{Limit: 20})))
	// Output: terminal orders.limit
}

func ExampleWhen() {
	big := func(err error) bool {
		e, ok := errors.AsType[*limitError](err)
		return ok && e.Limit > 1000
	}
	c := &classify.Classifier{Rules: []classify.Rule{
		classify.When(big, classify.VerdictDiscard, "orders.import"),
	}}
	show(c.Classify(&limitError{Limit: 5000}))
	show(c.Classify(&limitError{Limit: 20}))
	// Output:
	// discard orders.import
	// terminal classify_test.limitError
}

func ExampleMessage() {
	c := &classify.Classifier{Rules: []classify.Rule{
		classify.Message(regexp.MustCompile(`connection pool exhausted`), classify.VerdictRetry, "pool"),
	}}
	show(c.Classify(errors.New("ldap: connection pool exhausted")))
	// Output: retry pool
}

// uniqueViolation is the error of pgx and lib/pq for a key that exists already.
type uniqueViolation struct{}

func (uniqueViolation) Error() string    { return "duplicate key value violates unique constraint" }
func (uniqueViolation) SQLState() string { return "23505" }

// A handler that must not act twice inserts the record's idempotency key first. If the key exists
// already, an earlier delivery did the work: the record is done, which is no failure.
func ExampleIsUniqueViolation() {
	handled := map[string]bool{}
	insert := func(key string) error { // INSERT INTO handled (key) VALUES ($1)
		if handled[key] {
			return uniqueViolation{}
		}
		handled[key] = true
		return nil
	}
	handle := func(key string) error {
		if err := insert(key); classify.IsUniqueViolation(err) {
			return nil
		} else if err != nil {
			return err
		}
		fmt.Println("charged")
		return nil
	}
	fmt.Println(handle("billing/orders/3/7"))
	fmt.Println(handle("billing/orders/3/7"))
	// Output:
	// charged
	// <nil>
	// <nil>
}

func ExamplePanicError() {
	run := func(handler func()) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = &classify.PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		handler()
		return nil
	}
	err := run(func() { panic("no tax table") })
	r := new(classify.Classifier).Classify(err)
	fmt.Println(err)
	fmt.Println(r.Verdict, r.Class, r.Stack != "")
	// Output:
	// panic: no tax table
	// terminal panic.string true
}

func ExampleCleanClass() {
	fmt.Println(classify.CleanClass("tax table: miss"))
	// Output: tax_table__miss
}

func ExampleValidClass() {
	fmt.Println(classify.ValidClass("tax.miss"), classify.ValidClass("tax miss"))
	// Output: true false
}

func ExampleVerdict_String() {
	fmt.Println(classify.VerdictTerminal, classify.VerdictRetry, classify.VerdictDiscard)
	// Output: terminal retry discard
}
