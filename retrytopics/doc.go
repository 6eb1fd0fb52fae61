// Package retrytopics names and provisions the sibling topics of a source topic: its retry tiers,
// its dead-letter topic and that topic's ledger.
//
//	orders ─fail─▶ orders.retry.5s ──▶ orders.retry.30s ──▶ orders.retry.5m ──▶ orders.dlq
//	                                                                            orders.dlq.ledger
//
// [Naming] makes the names and reads them backwards, so that a tool that sees only a cluster can
// find the source of each topic. [Siblings] are the topics of one source. [Ensure] creates missing
// topics, grows topics with too few partitions, and refuses topics that would lose records.
//
// Everything here is safe for concurrent use, as long as the package's variables do not change.
package retrytopics
