// Package redrive redrives dead letters after a fix: slowly, and so that it
// stops by itself when the fix does not work.
//
// [Redriver.Plan] freezes which open letters of a dead-letter topic are meant and
// where they go, [Redriver.Run] redrives them. The copy on its target and the
// entry in the topic's ledger that says so commit together, so that neither a crash
// nor a second operator loses or doubles a record. A run sends a canary first and
// waits for its outcome, then goes up to its rate, and all the time reads the source's
// retry topics and the dead-letter topic: when a record that it redrove fails
// again with an error class of the run, or new traffic does, it aborts.
//
// What a run is and how far it came is in Kafka, in the ledger's topic. It survives
// its process, can be listed, resumed and aborted from any machine, and its ledger
// says afterwards what became of each letter.
//
// The package prints nothing and decides nothing that an operator should: the
// command redrive (redrive/cmd/redrive) is made of it.
package redrive
