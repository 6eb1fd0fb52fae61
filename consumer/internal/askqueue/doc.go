// Package askqueue collects the lanes that ask for a commit before the next tick, so that such a
// commit costs by the lanes that ask, not by all lanes.
package askqueue
