package retrytopics

import "strings"

// ProvisionError lists siblings that are missing or have too few partitions, if [Ensure] may not
// change that: by [Verify], or as the cluster denies it.
type ProvisionError struct {
	// Topics names them.
	Topics []string
	// Commands has one command for each topic, for an operator with the permission, in a shell
	// where BOOTSTRAP holds the brokers' addresses.
	Commands []string
	// Err is the reason why Ensure did not make the change; nil with Verify.
	Err error
}

// Error names the topics and lists the commands, one per line.
func (e *ProvisionError) Error() string {
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
func (e *ProvisionError) Unwrap() error { return e.Err }
