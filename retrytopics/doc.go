// Package retrytopics names and provisions the sibling topics of a source
// topic: its delayed retry tiers, its dead-letter topic and the ledger of that.
//
//	orders ──fail──▶ orders.retry.5s ──▶ orders.retry.30s ──▶ orders.retry.5m ──▶ orders.dlq
//	                                                                              orders.dlq.ledger
//
// [Naming] makes the names and reads them backwards, so a tool that sees only
// a cluster knows which topic belongs to which source. [Siblings] is what one
// source topic has. [Ensure] creates what is missing, grows what has become too
// small and refuses what would lose records.
//
// Everything here is safe for concurrent use, as long as nobody assigns the
// package's variables.
package retrytopics
