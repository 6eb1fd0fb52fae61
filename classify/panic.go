package classify

import "fmt"

// PanicError is the failure of a handler that panicked. Its class is
// panic.<type of Value>, its verdict terminal unless a rule says otherwise; a
// mark inside Value is no word of the handler's.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the text of runtime/debug.Stack, taken while panicking.
	Stack []byte
}

// Error returns "panic: " and the value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns Value where that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
