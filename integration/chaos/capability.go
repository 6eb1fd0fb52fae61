package chaos

// capability is what a run can do to its brokers.
type capability uint8

const (
	canProxy   capability = 1 << iota // a proxy stands before each broker
	canAnswer                         // the broker answers with errors, as ordered
	canRefuse                         // a topic can be made unwritable
	canEnd                            // nodes can be ended and started
	canFreeze                         // nodes can be frozen
	canRestart                        // all nodes can be ended at once, and started
	canDeny                           // members' rights can be taken
)
