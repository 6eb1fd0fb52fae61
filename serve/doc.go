// Package serve watches the dead-letter topics of a Kafka cluster, and lets a team look at them and
// bring letters back: over HTTP, with metrics and alerts.
//
// A [Server] keeps no state of its own. Letters, their states and the runs are in the dead-letter
// topics and their ledgers, which it reads and writes by packages dlq and redrive. So it can be
// stopped at any moment, and several of them share the work: a consumer group of theirs deals out
// the topics, and the owner of a topic reports its metrics and judges its alerts. Each server
// answers each request.
//
// The command redrive serve runs one. A service with an admin server of its own mounts
// [Server.Handler] there, and calls [Server.Run].
package serve
