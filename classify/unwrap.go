package classify

// maxErrors bounds the errors visited in one chain or tree, so that an error that wraps itself
// ends.
const maxErrors = 256

// survive is deferred around every call into foreign code. If that panics, the results of the
// deferring function keep their zero values, as if the method did not exist. A typical case is a
// nil pointer in a non-nil error.
func survive() { _ = recover() }

// unwrap returns the error or errors that err wraps.
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
