package chaos

// written is a record that the brokers acknowledged.
type written struct {
	topic     string
	partition int32
	offset    int64
	at        int64 // when, in nanoseconds
}

// olderLog is a partition that came back without its last records.
type olderLog struct {
	tp
	from int64 // the first offset that was lost
	at   int64 // when, in nanoseconds
}
