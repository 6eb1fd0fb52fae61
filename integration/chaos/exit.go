package chaos

// How processes exit.
const (
	exitOK     = iota
	exitBroken // a promise is broken
	exitFailed // the run could not be made
)
