// Package outage lets the members of a run learn from a file that what their handlers call is down.
package outage

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"
)

// Mode says which calls fail.
type Mode string

// The modes of an outage.
const (
	None    Mode = "" // no call
	All     Mode = "all"
	Tenants Mode = "tenants" // those for a share of the tenants, which are the records' keys
	Chance  Mode = "chance"  // a share of the calls
	Flaps   Mode = "flaps"   // all, in turns with none: the file comes and goes
)

// Begin writes the file of an outage that has a share of tenants or calls, in percent.
func Begin(file string, mode Mode, percent int) error {
	return os.WriteFile(file, fmt.Appendf(nil, "%s %d\n", mode, percent), 0o600)
}

// State is what a member knows.
type State struct{ is atomic.Pointer[setting] }

type setting struct {
	mode    Mode
	percent uint64
}

// Watch follows a file. It does not return.
func (s *State) Watch(file string) {
	for range time.Tick(50 * time.Millisecond) {
		s.Look(file)
	}
}

// Look reads the file once. There is no outage without one.
func (s *State) Look(file string) {
	text, err := os.ReadFile(file)
	var is setting
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%s %d\n", &is.mode, &is.percent)
	}
	if err != nil { // it may be half written
		s.is.Store(nil)
		return
	}
	s.is.Store(&is)
}

// Fails returns the outage in which a call for a record with that key fails, or None.
func (s *State) Fails(key []byte) Mode {
	is := s.is.Load()
	if is == nil {
		return None
	}
	n := uint64(0)
	switch is.mode {
	case Tenants:
		h := fnv.New64a()
		h.Write(key) // fails never
		n = h.Sum64() % 100
	case Chance:
		n = rand.Uint64N(100)
	}
	if n < is.percent {
		return is.mode
	}
	return None
}
