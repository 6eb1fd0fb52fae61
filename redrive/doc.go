// Package redrive redrives dead letters after a fix: it plans and makes runs, and follows the
// letters to their outcomes. It sends them slowly, and stops by itself when the fix does not work.
//
// [Redriver.Plan] freezes a selection of open letters and their targets. [Redriver.Run] redrives
// them. The copy on the target and its ledger entry commit in one transaction. So neither a crash
// nor a second operator loses a record, and for consumers that read committed each letter is
// written exactly once; the handler runs at least once.
//
// A run sends a canary first and waits for its outcome. Then it raises its rate up to [Pace.Rate].
// Meanwhile it reads the source's retry topics and the dead-letter topic. It aborts when redriven
// records or new traffic fail with an error class of the run; [Pace] sets how many failures it
// tolerates.
//
// The ledger's topic keeps a run's definition and progress. So a run survives its process, and any
// machine can list, resume or abort it. Afterwards the ledger holds the outcome of each letter.
// [Redriver.Progress] follows a run cheaply, and [Redriver.Status] derives outcomes that no process
// has recorded. A [Plan] can be stored as JSON and run by another process.
//
// The package prints nothing and takes no decision that is the operator's. The command redrive
// (redrive/cmd/redrive) is built on it.
package redrive
