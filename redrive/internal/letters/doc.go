// Package letters holds sets of dead letters by their places in one dead-letter topic. A set
// promises to take about a bit a letter where letters are dense, so that a run of millions fits
// into memory. It knows nothing of runs, ledgers or Kafka, and is not safe for concurrent use.
package letters
