package classify

// maxErrors bounds how many errors of one chain or tree are looked at, so that
// an error that wraps itself ends.
const maxErrors = 256

// survive is deferred around every call into foreign code. The results of the
// function that defers it keep their zero values: a method that panics counts
// as one that is not there. Typical is a nil pointer in a non-nil error.
func survive() { _ = recover() }

// unwrap returns what err wraps: one error or many.
func unwrap(err error) (one error, many []error) {
	defer survive()
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		one = e.Unwrap()
	case interface{ Unwrap() []error }:
		many = e.Unwrap()
	}
	return one, many
}

// text returns the error's message, or the empty string where making it panics.
func text(err error) (s string) {
	defer survive()
	return err.Error()
}
