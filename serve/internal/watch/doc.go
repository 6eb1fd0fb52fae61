// Package watch knows the dead-letter topics of a cluster: their letters, runs and the states of
// rules on them, as of when, and which of them this server owns. It writes nothing.
package watch
