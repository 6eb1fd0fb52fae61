package consumer

import (
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/headers"
)

// StuckError is returned by Run when handlers ignored that they were cancelled. Their goroutines, and only they, outlive
// Run; their records stay uncommitted and run again under the next owner.
type StuckError struct {
	// Records are where the records stand that the handlers were given: on their source or on a retry topic.
	Records []headers.Position
}

func newStuckError(attempts []*attempt) *StuckError {
	e := &StuckError{}
	for _, a := range attempts {
		e.Records = append(e.Records, a.physical())
	}
	return e
}

func (e *StuckError) Error() string {
	var at []string
	for _, p := range e.Records {
		at = append(at, p.String())
	}
	return fmt.Sprintf("consumer: %d handlers ignored that their context was cancelled, on %s: have them return when ctx is done",
		len(e.Records), strings.Join(at, ", "))
}
