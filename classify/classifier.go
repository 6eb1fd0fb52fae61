package classify

import (
	"reflect"
	"time"
)

// Classifier turns errors into results. The zero value has the built-in rules
// only and calls unknown errors terminal. A Classifier is safe for concurrent
// use as long as nobody changes its fields.
type Classifier struct {
	// Rules are asked in order, after the handler's own word and before the
	// built-in rules; the first that matches counts, the others are not asked.
	Rules []Rule
	// Unknown is the verdict of an error that nobody has an opinion on.
	// The zero value is VerdictTerminal.
	Unknown Verdict
}

// Result is what is known about a failure.
type Result struct {
	// Verdict says what to do with the record.
	Verdict Verdict
	// Default is true where nobody had an opinion, so that Verdict is
	// Classifier.Unknown.
	Default bool
	// Class names the fault: 1 to 128 characters of [A-Za-z0-9_.*/-].
	Class string
	// Kind is the kind of failure, where it is one of those that are told apart; mostly it is empty.
	Kind Kind
	// Fingerprint groups the same fault across records: 16 hex digits over the
	// class, the message without what differs from record to record, and the
	// top frame where there is one. It is stable within a major version.
	Fingerprint string
	// Message is the error's text, as long as it is; empty where making it
	// panicked.
	Message string
	// Stack has the frames of a panic, or of an error that carries its own, as
	// debug.Stack prints them, up to MaxStack. Mostly it is empty.
	Stack string
	// RetryAfter is the shortest wait that the handler or the error asked for;
	// zero is none. It is set with VerdictRetry only.
	RetryAfter time.Duration
}

// Classify says what err means. It never panics, whatever the methods of err
// do. A nil error is no failure: its result is the zero value, which has an
// empty class and must not be routed by its verdict. A nil Classifier is one
// without rules.
func (c *Classifier) Classify(err error) Result {
	if err == nil {
		return Result{}
	}
	f := findings{left: maxErrors}
	typeName := f.search(err)
	message := text(err)

	// Ask each source in turn for what the ones before left open.
	got := f.word
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
		got.fill(says(ClassDecode, VerdictTerminal))
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

func (o *opinion) complete() bool { return o.decided && o.class != "" }

// fill takes from next what o does not have.
func (o *opinion) fill(next opinion) {
	if o.class == "" {
		o.class = next.class
	}
	if !o.decided && next.decided {
		o.verdict, o.decided = next.verdict, true
	}
}

// findings is what one walk over a tree of errors collects.
type findings struct {
	left     int // errors that may still be looked at
	word     opinion
	specific opinion
	vague    opinion
	after    time.Duration
	kind     Kind // by a mark
	decode   bool // a decoder's error was met
	within   int  // so many decoders' errors around the one that is looked at
	panicked *PanicError
	traced   error // the innermost with a stack of its own
	tracedAs *shape
}

// search walks err depth first, outermost first, and returns the type name of
// the innermost named error.
func (f *findings) search(err error) (name string) {
	if err == nil || f.left == 0 {
		return ""
	}
	f.left--
	switch e := err.(type) {
	case *markedError:
		f.word.fill(opinion{e.class, e.verdict, true})
		if f.kind == "" {
			f.kind = e.kind
		}
		f.wait(e.after)
		return f.search(e.err)
	case *namedError:
		f.word.fill(opinion{class: e.class})
		return f.search(e.err)
	case *decodeError:
		f.decode = true
		f.within++
		name = f.search(e.err)
		f.within--
		return name
	case *PanicError:
		// What was passed to panic is evidence, not an opinion: the walk
		// ends here.
		if e != nil {
			f.panicError(e)
		}
		return ""
	}

	s := shapeOf(err)
	o, vague := builtin(err, s)
	if f.within > 0 {
		o = o.outage()
	}
	if vague {
		f.vague.fill(o)
	} else {
		f.specific.fill(o)
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

// outage is the opinion on what is inside of a decoder's error, if that is plainly an outage.
func (o opinion) outage() opinion {
	switch {
	case !o.decided || o.verdict != VerdictRetry || o.class == classEOF:
		return opinion{}
	case o.class == ClassTimeout:
		o.class = ClassDecode + "." + ClassTimeout
	}
	return o
}

// kindOf is the kind of a failure of a class.
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

// wait keeps the first delay that was asked for.
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
	f.specific.fill(says(CleanClass(class), VerdictTerminal))
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
