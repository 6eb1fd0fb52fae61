package trace

// Written is a record that the brokers acknowledged.
type Written struct {
	Topic     string
	Partition int32
	Offset    int64
	At        int64 // when, in nanoseconds
}

// OlderLog is a partition that came back without its last records.
type OlderLog struct {
	TP
	From int64 // the first offset that was lost
}
