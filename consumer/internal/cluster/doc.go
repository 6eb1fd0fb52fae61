// Package cluster asks the brokers which topics there are, where logs begin and end, and which
// offsets groups committed. It changes nothing.
package cluster
