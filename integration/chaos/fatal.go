package chaos

import (
	"fmt"
	"os"
)

// fatal ends a member that can no longer tell what it does.
func fatal(err error) {
	fmt.Fprintln(os.Stderr, "chaos: the journal cannot be written:", err)
	os.Exit(exitFailed)
}
