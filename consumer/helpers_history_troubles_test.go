package consumer_test

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// every reports whether something is to happen that happens again and again, with that mean time.
func (h *history) every(what string, mean time.Duration) bool {
	at, ok := h.next[what]
	if ok && time.Now().Before(at) {
		return false
	}
	h.next[what] = time.Now().Add(time.Duration(h.rnd.ExpFloat64() * float64(mean)))
	return ok
}

// happens notes something that makes lanes wait.
func (h *history) happens(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.quiet = time.Now()
	h.logf(format, args...)
}

// some returns a process that lives and is connected, or nil.
func (h *history) some() *mortalProcess {
	if p := h.live[h.rnd.IntN(h.members)]; p != nil && !p.silent() {
		return p
	}
	return nil
}

// restart starts the processes whose time has come. One that has died waits for longer the more
// have died, as where an orchestrator restarts them: otherwise the group may go round in a circle,
// in which a record that kills always runs beside handlers that outlast their timeouts.
func (h *history) restart() {
	for m := range h.members {
		if p := h.live[m]; p != nil && p.dead.Load() {
			delete(h.live, m)
			h.again[m] = time.Now().Add(time.Duration(1+h.rnd.IntN(30+min(5*h.deaths, 300))) * time.Second)
			h.deaths++
			h.progress = time.Now()
		}
		if at := h.again[m]; h.live[m] == nil && !at.IsZero() && time.Now().After(at) {
			h.happens("process %d begins", len(h.processes))
			h.live[m] = startMortal(h, len(h.processes))
			h.processes = append(h.processes, h.live[m])
		}
	}
}

// troubles has something happen, or ends it.
func (h *history) troubles(more bool) {
	if h.every("steady", time.Second) && more {
		h.write("steady", 1, false)
	}
	if h.every("write", 5*time.Second) && more {
		h.write(h.cfg.Topics[h.rnd.IntN(len(h.cfg.Topics))], 1+h.rnd.IntN(10), h.kind > 0)
	}
	if h.every("accident", 90*time.Second) && more && h.accidents {
		if p := h.some(); p != nil {
			p.die(nil, "")
		}
	}
	if h.every("slow", 30*time.Second) && h.slowCommits {
		h.slow.Store(0)
		if more && h.rnd.IntN(2) == 0 {
			h.slow.Store(h.rnd.Int64N(int64(2 * time.Second)))
		}
	}
	if h.every("pause", 40*time.Second) && h.pauses && h.members == 1 {
		h.pause(more)
	}
	if h.every("refuse", 60*time.Second) && h.refusals {
		h.refuse(more)
	}
	if h.every("leave", 60*time.Second) && h.joins && more {
		h.leave()
	}
	if h.every("cut", 90*time.Second) && h.joins && more {
		h.cut()
	}
	if h.every("expel", 90*time.Second) && h.joins && more {
		h.happens("a member is expelled")
		h.mu.Lock()
		for _, p := range h.live {
			p.excuse()
		}
		h.mu.Unlock()
		expel(h.t, h.k, h.rnd.IntN(h.members))
	}
}

// pause pauses a topic, or resumes it.
func (h *history) pause(more bool) {
	p := h.some()
	switch {
	case p == nil:
	case h.paused != "":
		h.happens("resume %s", h.paused)
		p.c.Resume(h.paused)
		h.paused = ""
	case more:
		h.paused = h.cfg.Topics[1]
		h.happens("pause %s", h.paused)
		p.c.Pause(h.paused)
	}
}

// refuse has commits refused, or accepted again.
func (h *history) refuse(more bool) {
	if h.fault != nil {
		h.happens("commits are accepted again")
		h.fault.Remove()
		h.fault = nil
	} else if more {
		h.happens("commits are refused")
		f := kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1, Err: kerr.NotCoordinator}
		if h.rnd.IntN(2) == 0 {
			f.Topic, f.Err = h.cfg.Topics[1], kerr.TopicAuthorizationFailed
		}
		h.fault = h.k.Cluster.Fault(f)
	}
}

// leave has a member leave the group. It joins again later.
func (h *history) leave() {
	p := h.some()
	if p == nil {
		return
	}
	h.happens("process %d leaves", p.n)
	h.mu.Lock()
	p.excuse() // its drain may be over before its handler
	h.mu.Unlock()
	m := 0
	for h.live[m] != p {
		m++
	}
	delete(h.live, m)
	h.again[m] = time.Now().Add(time.Duration(1+h.rnd.IntN(120)) * time.Second)
	go p.stop()
}

// cut cuts a process off for some time.
func (h *history) cut() {
	p := h.some()
	if p == nil {
		return
	}
	took := time.Duration(5+h.rnd.IntN(100)) * time.Second
	h.happens("process %d is cut off for %v", p.n, took)
	p.cut.Store(true)
	h.mu.Lock()
	p.excuse()
	h.mu.Unlock()
	p.severs()
	time.AfterFunc(took, func() {
		p.cut.Store(false)
		h.happens("process %d is connected again", p.n)
	})
}
