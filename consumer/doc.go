// Package consumer runs a handler on the records of Kafka topics. It writes records that fail to
// delayed retry topics, and finally to a dead-letter topic beside the source. Later records keep
// flowing meanwhile.
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
// Delivery is at least once. The offset of a record is committed only when the record is finished:
// its handler succeeded, it was discarded, or its copy is acknowledged. All in-sync replicas
// acknowledge a copy on a retry or dead-letter topic. After a crash, uncommitted records run again.
// After a clean hand-over, only records that finished ahead of an unfinished record of the same
// partition run again. By the clock of the host, no delivery is early.
//
// # Lanes
//
// A lane is a source partition and the same partition of each of its retry topics. It is the unit
// of ownership. The group assigns source partitions, and the lane's tiers follow. A lane that is
// slow, or whose copies cannot be written, holds up no other lane.
//
// # Errors
//
// Package classify decides what a handler's error means: the record is retried, is terminal, or is
// discarded. An unknown error is terminal, and its record goes straight to the dead-letter topic.
// Such an error is usually a bug, and retrying bugs only creates load.
package consumer
