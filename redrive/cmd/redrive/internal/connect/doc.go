// Package connect finds out how to reach a cluster and how siding's topics are named there: by flags, by SIDING_…
// variables of the environment, and by a profile of a configuration file, in this order.
//
// Secrets come from the environment or from files. They are no flag's value, which every user of the machine could read
// in the list of processes, and they do not stand in the configuration file, which gets copied and committed.
package connect
