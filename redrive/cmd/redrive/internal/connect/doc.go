// Package connect finds how to reach a cluster and how siding's topics are named there. Flags come
// first, then SIDING_… variables of the environment, then a profile of a configuration file.
//
// Secrets come from the environment or from files. No flag takes a secret, since every user of the
// machine can read the list of processes. The configuration file holds none, since it gets copied
// and committed.
package connect
