package chaos

// window is the time of a fault, and what the fault does.
type window struct {
	kind     string
	from, to int64
	infra    bool // brokers or networks fail: any member may lose its membership
	parts    bool // it may part a member from its group
	down     bool // what handlers call is down, at least in part
}
