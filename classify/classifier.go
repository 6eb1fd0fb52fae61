package classify

import (
	"errors"
	"fmt"
	"reflect"
	"time"
)

// Classifier turns errors into results. The zero value has only the built-in rules, and calls
// unknown errors terminal. A Classifier is safe for concurrent use as long as its fields do not
// change.
type Classifier struct {
	// Rules apply after the handler's verdict and before the built-in rules. The first rule that
	// matches counts.
	Rules []Rule
	// Unknown is the verdict of an error that no source classifies. The zero value is
	// VerdictTerminal.
	Unknown Verdict
}

// Validate reports every rule that can match nothing, and every verdict and class that is none. Its
// error has a line for each, which begins with "Classifier." and the field. consumer.New calls it;
// Classify does not, and takes such a verdict as VerdictTerminal.
func (c *Classifier) Validate() error {
	if c == nil {
		return nil
	}
	var all []error
	for i := range c.Rules {
		for _, problem := range c.Rules[i].problems() {
			all = append(all, fmt.Errorf("Classifier.Rules[%d]: %s", i, problem))
		}
	}
	if problem := c.Unknown.problem("Classifier.Unknown"); problem != "" {
		all = append(all, errors.New(problem))
	}
	return errors.Join(all...)
}

// Result describes a failure.
type Result struct {
	// Verdict decides what happens to the record.
	Verdict Verdict
	// Default is true if no source had a verdict, so that Verdict is Classifier.Unknown.
	Default bool
	// Class names the fault: 1 to 128 characters of [A-Za-z0-9_.*/-].
	Class string
	// Kind is the kind of failure. It is empty for most failures.
	Kind Kind
	// Fingerprint groups the same fault across records. It is 16 hex digits over the class, the
	// [Mask] of the message, and the function of the top stack frame if there is one. It is stable
	// within a major version.
	Fingerprint string
	// Message is the error's whole text. It is empty if the method Error panicked.
	Message string
	// Stack has the frames of a panic, or of an error that carries a stack, in the format of
	// debug.Stack, up to MaxStack. It is empty for most errors.
	Stack string
	// RetryAfter is the least wait that the handler or the error asked for; zero if none did. It is
	// set with VerdictRetry only.
	RetryAfter time.Duration
}

// Classify classifies err. It never panics, whatever the methods of err do. A nil error is no
// failure: its result is the zero value, whose class is empty and whose verdict must be ignored. A
// nil Classifier has no rules of its own.
func (c *Classifier) Classify(err error) Result {
	if err == nil {
		return Result{}
	}
	f := findings{left: maxErrors}
	typeName := f.search(err)
	message := text(err)

	// Each source fills what the earlier ones left open.
	got := f.marked
	if c != nil && !got.complete() {
		for i := range c.Rules {
			if r := &c.Rules[i]; r.matches(err, message) {
				got.fill(opinion{CleanClass(r.Class), r.Verdict.known(), true})
				break
			}
		}
	}
	got.fill(f.specific)
	got.fill(f.vague)
	if f.decode && (!got.decided || got.verdict == VerdictTerminal) {
		got.fill(withVerdict(ClassDecode, VerdictTerminal))
	}
	byDefault := !got.decided
	if c != nil {
		got.fill(opinion{verdict: c.Unknown.known(), decided: true})
	}
	got.fill(opinion{class: typeName})
	got.fill(opinion{class: ClassUnclassified})

	r := Result{
		Verdict: got.verdict,
		Default: byDefault,
		Class:   got.class,
		Kind:    f.kindOf(got.class),
		Message: message,
		Stack:   f.stack(),
	}
	if r.Verdict == VerdictRetry {
		r.RetryAfter = f.after
	}
	r.Fingerprint = fingerprint(r.Class, message, topFrame(r.Stack))
	return r
}

// findings collects the results of one walk over a tree of errors.
type findings struct {
	left     int // errors that may still be visited
	marked   opinion
	specific opinion
	vague    opinion
	after    time.Duration
	kind     Kind // by a mark
	decode   bool // a decoder's error was met
	within   int  // decoders' errors around the visited one
	panicked *PanicError
	traced   error // the innermost with a stack of its own
	tracedAs *shape
}

// search walks err depth first, outermost first, and returns the type name of the innermost named
// error.
func (f *findings) search(err error) (name string) {
	if err == nil || f.left == 0 {
		return ""
	}
	f.left--
	switch e := err.(type) {
	case *markedError:
		f.marked.fill(opinion{e.class, e.verdict, true})
		if f.kind == "" {
			f.kind = e.kind
		}
		f.wait(e.after)
		return f.search(e.err)
	case *namedError:
		f.marked.fill(opinion{class: e.class})
		return f.search(e.err)
	case *decodeError:
		f.decode = true
		f.within++
		name = f.search(e.err)
		f.within--
		return name
	case *PanicError:
		// The argument of panic is evidence, not an opinion: the walk ends here.
		if e != nil {
			f.panicError(e)
		}
		return ""
	}

	s := shapeOf(err)
	if !f.marked.complete() { // else the marks further out decide all
		f.builtin(err, s)
	}
	if s.has&hasRetryAfter != 0 {
		f.wait(delayOf(err))
	}
	if s.has&(hasCallers|hasStackTrace) != 0 {
		f.traced, f.tracedAs = err, s
	}
	if s.has&(wrapsOne|wrapsMany) != 0 {
		one, many := unwrap(err)
		name = f.search(one)
		for _, e := range many {
			if n := f.search(e); name == "" {
				name = n
			}
		}
	}
	if name == "" {
		name = s.name
	}
	return name
}

// builtin adds the built-in opinion on a visited error.
func (f *findings) builtin(err error, s *shape) {
	o, vague := builtin(err, s)
	if f.within > 0 {
		o = o.outage()
	}
	if vague {
		f.vague.fill(o)
	} else {
		f.specific.fill(o)
	}
}

// kindOf returns the kind of a class.
func (f *findings) kindOf(class string) Kind {
	switch {
	case f.panicked != nil:
		return KindPanic
	case f.kind != "":
		return f.kind
	case f.decode, class == ClassDecode:
		return KindDecode
	}
	return ""
}

// wait keeps the first requested delay.
func (f *findings) wait(d time.Duration) {
	if f.after == 0 {
		f.after = d
	}
}

func (f *findings) panicError(e *PanicError) {
	if f.panicked == nil {
		f.panicked = e
	}
	class := "panic.nil"
	if e.Value != nil {
		class = "panic." + typeName(reflect.TypeOf(e.Value))
	}
	if f.within > 0 {
		class = ClassDecode + "." + class
	}
	f.specific.fill(withVerdict(CleanClass(class), VerdictTerminal))
}

func (f *findings) stack() string {
	switch {
	case f.panicked != nil:
		return string(panicFrames(f.panicked.Stack))
	case f.traced != nil:
		return tracedFrames(f.traced, f.tracedAs)
	}
	return ""
}
