// Package fifo is a first-in, first-out queue that reuses its memory. It promises that a queue
// whose length stays bounded stops allocating, and that it keeps no element that was taken out. It
// knows nothing of records, lanes or Kafka, and is not safe for concurrent use.
package fifo
