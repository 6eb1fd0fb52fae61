// Package guard gives the program redrive a check of package redrive that other users do not need.
// Package redrive imports this package and sets the check. Package guard knows nothing of the
// format of runs.
package guard

import "github.com/sidingkafka/siding/dlq"

// RefuseUnfinished returns a *redrive.RefusedError if a ledger, as last read, has an unfinished
// run. A process calls it before it writes to the dead-letter topic, deletes from it, or resolves
// its letters by other means than a run. The run would count new letters as failures, and would
// send resolved letters that it has already read.
var RefuseUnfinished func(ledger *dlq.Ledger) error
