package retrytopics

import "strings"

// UndoneError says which siblings are missing or have too few partitions when
// [Ensure] may not change that, because of [Verify] or because the cluster does
// not allow it.
type UndoneError struct {
	// Topics names them.
	Topics []string
	// Commands are to be run, one for each topic, by somebody who is allowed
	// to, in a shell where BOOTSTRAP holds the brokers' addresses.
	Commands []string
	// Err is why Ensure did not do it itself; nil with Verify.
	Err error
}

// Error names the topics and lists the commands, a line each.
func (e *UndoneError) Error() string {
	var b strings.Builder
	b.WriteString("topics are missing or have too few partitions")
	if e.Err != nil {
		b.WriteString(", and cannot be provisioned from here: ")
		b.WriteString(e.Err.Error())
	}
	b.WriteString("; run")
	for _, c := range e.Commands {
		b.WriteString("\n")
		b.WriteString(c)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *UndoneError) Unwrap() error { return e.Err }
