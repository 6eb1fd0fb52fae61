// Package brokers has the brokers of a run, and what can be done to them: the embedded broker in a
// process of its own, real ones in containers, or somebody's cluster, to which nothing is done.
package brokers
