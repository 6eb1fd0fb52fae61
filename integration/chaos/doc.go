// Package chaos proves on a cluster, in real time, that a consumer loses nothing and holds nothing
// up while everything around it fails.
//
// A run starts consumers as processes of their own, writes records to their topics, and injects
// faults: processes that are killed or suspended, members that join and leave, brokers that fail,
// connections that are cut, errors of brokers. Each record carries a script that says how its
// handler fails. The handlers write journals. At the end a checker reads the journals, the topics
// and the committed offsets, and names each record that breaks a promise.
//
// The faults and the records follow from a seed, which the run prints. The same seed plays the same
// schedule; the timing of the processes differs.
//
// A program of two lines runs it against a team's own handler:
//
//	func main() {
//		os.Exit(chaos.Main(chaos.Config{Handler: billing.Handle}))
//	}
//
// The processes are copies of that program: [Main] and [Child] recognize them by an environment
// variable. So nothing that must happen once only belongs before that call.
package chaos
