package classify

import "fmt"

// PanicError is the failure of a handler that panicked. Its class is panic.<type of Value>. Its
// verdict is terminal unless a rule decides otherwise; a mark inside Value does not count.
type PanicError struct {
	// Value is the argument of panic.
	Value any
	// Stack is the text of runtime/debug.Stack, taken while panicking.
	Stack []byte
}

// Error returns "panic: " and the value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns Value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
