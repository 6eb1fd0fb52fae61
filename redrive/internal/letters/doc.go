// Package letters holds sets of dead letters by their places in one dead-letter topic. A set takes
// about a bit per letter where letters are dense, so that a run of millions of letters fits into
// memory. It knows nothing of runs, ledgers or Kafka, and is not safe for concurrent use.
package letters
