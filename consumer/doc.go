// Package consumer runs a handler on the records of Kafka topics and moves aside what fails:
// through delayed retry topics, then to a dead-letter topic beside the source, while the records
// behind it keep flowing.
//
//	c, err := consumer.New(consumer.Config{
//		Group:   "billing",
//		Topics:  []string{"orders"},
//		Kafka:   []kgo.Opt{kgo.SeedBrokers("localhost:9092")},
//		Handler: handle,
//	})
//	if err != nil { return err }
//	return c.Run(ctx)
//
// # Delivery
//
// At least once: the offset of a record moves only when its handler succeeded, or when its copy on
// a retry or dead-letter topic was acknowledged by all in-sync replicas. After a crash, what was
// not committed runs again; after a clean hand-over, only what finished ahead of an unfinished
// record of the same partition does. No delivery is early by the clock of the host.
//
// # Lanes
//
// The unit of ownership is the lane: a source partition and the same partition of each of its retry
// topics. The group assigns source partitions; the lane's tiers follow. A lane that is slow, or
// whose copies cannot be written, holds up no other.
//
// # Errors
//
// What a handler's error means is package classify's: it is worth another try, terminal, or to be
// dropped. An unknown error is terminal and goes straight to the dead-letter topic, because it is
// usually a bug, and retrying bugs makes storms.
package consumer
