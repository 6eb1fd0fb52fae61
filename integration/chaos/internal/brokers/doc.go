// Package brokers has the brokers of a run, and does to them what faults want. They are the
// embedded broker in a process of its own, real ones in containers, or the caller's cluster, to
// which nothing is done.
package brokers
