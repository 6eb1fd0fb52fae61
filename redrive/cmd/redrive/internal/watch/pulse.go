package watch

import (
	"sync"
	"time"
)

// pulse says how far a reading is, and since when the brokers are silent.
type pulse struct {
	mu          sync.Mutex
	busy        bool
	heard       time.Time // when they answered last
	read, total int64     // offsets
}

// begin begins a reading.
func (p *pulse) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy, p.heard, p.read, p.total = true, now, 0, 0
}

// hear says that the brokers answered.
func (p *pulse) hear(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = now
}

// progress says that some of the offsets were read. More than before are an answer.
func (p *pulse) progress(now time.Time, read, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if read != p.read {
		p.heard = now
	}
	p.read, p.total = read, total
}

// end ends the reading.
func (p *pulse) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = false
}

// silence returns since when a reading waits for an answer, if that is for longer than patience,
// and the progress of the reading.
func (p *pulse) silence(now time.Time) (since time.Time, read, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy && now.Sub(p.heard) > patience {
		since = p.heard
	}
	return since, p.read, p.total
}

// patience is how long brokers may take to answer.
const patience = 10 * time.Second
