package classify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// list is not comparable by ==, and implements Is.
type list struct{ _ []int }

func (list) Error() string { return "list" }

func (list) Is(target error) bool { _, ok := target.(list); return ok }

func TestRule_Matches(t *testing.T) {
	t.Parallel()
	errBusy := errors.New("busy")
	never := func(error) bool { return false }
	rules := func(r ...Rule) *Classifier { return &Classifier{Rules: r} }
	for _, tt := range []struct {
		name    string
		c       *Classifier
		err     error
		verdict Verdict
		class   string
	}{
		{"sentinel", rules(Is(errBusy, VerdictRetry, "busy")), fmt.Errorf("x: %w", errBusy), VerdictRetry, "busy"},
		{"sentinel that can't be compared", rules(Is(list{}, VerdictRetry, "list")), fmt.Errorf("x: %w", list{}), VerdictRetry, "list"},
		{"other sentinel", rules(Is(errBusy, VerdictRetry, "busy")), errBare, VerdictTerminal, "unclassified"},
		{"type", rules(Type[*skuError](VerdictDiscard, "sku")), fmt.Errorf("x: %w", &skuError{1}), VerdictDiscard, "sku"},
		{"type by interface", rules(Type[interface {
			error
			StatusCode() int
		}](VerdictDiscard, "status")), httpError{code: 500}, VerdictDiscard, "status"},
		{"predicate", rules(When(func(err error) bool { return err == errBusy }, VerdictRetry, "p")), errBusy, VerdictRetry, "p"},
		{"message", rules(Message(regexp.MustCompile(`pool (is )?full`), VerdictRetry, "pool")), errors.New("the pool is full"), VerdictRetry, "pool"},
		{"first match wins", rules(When(never, VerdictDiscard, "no"), Is(errBusy, VerdictRetry, "first"), Is(errBusy, VerdictDiscard, "second")), errBusy, VerdictRetry, "first"},
		{"without a class", rules(Is(io.ErrUnexpectedEOF, VerdictTerminal, ""), Is(io.ErrUnexpectedEOF, VerdictRetry, "late")), io.ErrUnexpectedEOF, VerdictTerminal, "net.eof"},
		{"before built-ins", rules(Is(context.Canceled, VerdictDiscard, "gone")), context.Canceled, VerdictDiscard, "gone"},
		{"after the handler's verdict", rules(Is(errBusy, VerdictDiscard, "busy")), Retryable(errBusy), VerdictRetry, "busy"},
		{"after the handler's class", rules(Is(errBusy, VerdictDiscard, "busy")), As(errBusy, "mine"), VerdictDiscard, "mine"},
		{"in a joined error", rules(Is(errBusy, VerdictRetry, "busy")), errors.Join(errBare, fmt.Errorf("x: %w", errBusy)), VerdictRetry, "busy"},
		{"of a panic", rules(Type[*PanicError](VerdictRetry, "crash")), &PanicError{Value: 1}, VerdictRetry, "crash"},
		{"of what was passed to panic", rules(Is(errBusy, VerdictRetry, "")), &PanicError{Value: errBusy}, VerdictRetry, "panic.errors.errorString"},
		{"dirty class", rules(Is(errBusy, VerdictRetry, "is busy")), errBusy, VerdictRetry, "is_busy"},
		{"verdict that is none", rules(Is(errBusy, 77, "busy")), Retryable(errBusy), VerdictRetry, "busy"},
		{"verdict that is none, alone", rules(Is(errBusy, 77, "busy")), errBusy, VerdictTerminal, "busy"},
		{"rules that match nothing", rules(Rule{}, Is(nil, VerdictRetry, "a"), When(nil, VerdictRetry, "b"), Message(nil, VerdictRetry, "c")), errBusy, VerdictTerminal, "unclassified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.c.Classify(tt.err)
			if got.Verdict != tt.verdict || got.Class != tt.class {
				t.Errorf("Classify(%v) = %v, %q; want %v, %q", tt.err, got.Verdict, got.Class, tt.verdict, tt.class)
			}
		})
	}
}

// A rule that can match nothing is a mistake that no failure would show.
func TestRule_ThatCanMatchNothingIsReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		c    Classifier
		want []string // the lines
	}{
		"the zero value": {Classifier{}, nil},
		"good rules": {Classifier{Unknown: VerdictDiscard, Rules: []Rule{
			Is(io.EOF, VerdictRetry, "io.eof"), Type[*skuError](VerdictDiscard, ""), Message(regexp.MustCompile("x"), VerdictTerminal, "a-b/c_d.*"),
		}}, nil},
		"no condition":   {Classifier{Rules: []Rule{{Verdict: VerdictRetry, Class: "x"}}}, []string{"Classifier.Rules[0]: the rule has no condition, so it matches nothing: make it with classify.Is, Type, When or Message"}},
		"When of nil":    {Classifier{Rules: []Rule{When(nil, VerdictRetry, "x")}}, []string{"Classifier.Rules[0]: the function of When is nil, so the rule matches nothing: pass one, or remove the rule"}},
		"Message of nil": {Classifier{Rules: []Rule{Message(nil, VerdictRetry, "x")}}, []string{"Classifier.Rules[0]: the regular expression of Message is nil, so the rule matches nothing: pass one, or remove the rule"}},
		"all at once": {Classifier{Rules: []Rule{Is(io.EOF, VerdictRetry, ""), Is(nil, 77, "a class!")}, Unknown: 77}, []string{
			"Classifier.Rules[1]: the target of Is is nil, so the rule matches nothing: pass one, or remove the rule",
			"Classifier.Rules[1]: Verdict is Verdict(77): VerdictTerminal, VerdictRetry or VerdictDiscard",
			`Classifier.Rules[1]: Class "a class!" is no class: at most 128 characters of [A-Za-z0-9_.*/-], such as "a_class_"`,
			"Classifier.Unknown is Verdict(77): VerdictTerminal, VerdictRetry or VerdictDiscard",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			if err := tt.c.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if err := (*Classifier)(nil).Validate(); err != nil {
		t.Errorf("a nil Classifier: %v", err)
	}
}
