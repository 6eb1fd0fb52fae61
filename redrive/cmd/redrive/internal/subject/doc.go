// Package subject finds what a verb is about: a dead-letter topic by its name, its ledger, and the
// letters that the operator chose.
package subject
