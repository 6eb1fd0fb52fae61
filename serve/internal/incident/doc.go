// Package incident decides when an incident begins, gets worse and is over, by the alerts of a
// topic. An incident begins when an alert is due. Each receiver is notified of it once, and once
// more when it is over.
//
// The state of an incident is a note in the ledger of the topic. So any server goes on where
// another one ended, and sends nothing a second time, unless that one ended between the
// notification and its note.
package incident
