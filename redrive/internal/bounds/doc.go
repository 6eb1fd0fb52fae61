// Package bounds asks a cluster where topics begin and end. It promises an answer for all
// partitions, or an error: a partition that could not answer would look like one from which nothing
// expired, or on which nothing is old. It knows nothing of runs or letters.
package bounds
