package trace

// Window is the time of a fault, and what the fault does.
type Window struct {
	Kind     string
	From, To int64
	Infra    bool // brokers or networks fail: any member may lose its membership
	Parts    bool // it may part a member from its group
	Down     bool // what handlers call is down, at least in part
}

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
