// Package guard gives the program redrive a check of package redrive that its users do not need.
// Package redrive imports this package and sets the check; it knows nothing of the format of runs.
package guard

import "github.com/sidingkafka/siding/dlq"

// RefuseUnfinished returns a *redrive.RefusedError if a ledger, as it was read last, has an
// unfinished run. A process asks it before it writes to the dead-letter topic, deletes from it, or
// resolves its letters by other means than a run: the run would count new letters as failures, and
// send the letters that it has read already.
var RefuseUnfinished func(ledger *dlq.Ledger) error
