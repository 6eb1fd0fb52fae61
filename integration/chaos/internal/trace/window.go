package trace

// Window is the time of a fault, and what the fault does.
type Window struct {
	Kind     string
	From, To int64
	Infra    bool // brokers or networks fail: any member may lose its membership
	Parts    bool // it may part a member from its group
	Down     bool // what handlers call is down, at least in part
}
