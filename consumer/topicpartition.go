package consumer

// topicPartition names a partition.
type topicPartition struct {
	topic     string
	partition int32
}

// put sets the value of a partition.
func put[V any](m map[string]map[int32]V, topic string, partition int32, v V) {
	if m[topic] == nil {
		m[topic] = map[int32]V{}
	}
	m[topic][partition] = v
}
