package classify

// opinion is the result of one source. An empty class or a missing verdict leaves that part to the
// next source.
type opinion struct {
	class   string
	verdict Verdict
	decided bool // verdict is one
}

func withVerdict(class string, v Verdict) opinion { return opinion{class, v, true} }

func (o *opinion) complete() bool { return o.decided && o.class != "" }

// fill takes from next the parts that o lacks.
func (o *opinion) fill(next opinion) {
	if o.class == "" {
		o.class = next.class
	}
	if !o.decided && next.decided {
		o.verdict, o.decided = next.verdict, true
	}
}

const classEOF = "net.eof"

// outage returns the opinion on the content of a decoder's error, if that is plainly an outage.
func (o opinion) outage() opinion {
	switch {
	case !o.decided || o.verdict != VerdictRetry || o.class == classEOF:
		return opinion{}
	case o.class == ClassTimeout:
		o.class = ClassDecode + "." + ClassTimeout
	}
	return o
}
