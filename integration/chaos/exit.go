package chaos

import (
	"fmt"
	"os"
)

// How processes exit.
const (
	exitOK     = iota
	exitBroken // a promise is broken
	exitFailed // the run could not be made
)

// fatal ends a member that can no longer tell what it does.
func fatal(err error) {
	fmt.Fprintln(os.Stderr, "chaos: the journal cannot be written:", err)
	os.Exit(exitFailed)
}
