package trace

import (
	"fmt"
	"os"
)

// Fatal ends a member that can no longer tell what it does, as one that cannot begin.
func Fatal(err error) {
	fmt.Fprintln(os.Stderr, "chaos: the journal cannot be written:", err)
	os.Exit(2)
}
