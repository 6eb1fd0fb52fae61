//go:build !race

package costs

// race reports whether the race detector is built in.
const race = false
