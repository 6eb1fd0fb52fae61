// Package trace has what the members and the harness of a run write down, and how to read it.
// That are scripts in the headers of records, journals of members, samples of what brokers said,
// and facts of members, faults and records. The checker knows a run by these, and by its topics.
package trace
