// Package connect finds how to reach a cluster and how siding's topics are named there: by flags,
// by SIDING_… variables of the environment and by a profile of a configuration file, in this order.
//
// Secrets come from the environment or from files. No flag takes a secret, since every user of the
// machine can read the list of processes. The configuration file holds none, since it gets copied
// and committed.
package connect
