package guard

import "time"

const (
	// firstWait and longestWait are the times before rounds of probes. 15 s, so that a topic is
	// back within 30 s of an outage's end.
	firstWait, longestWait = time.Second, 15 * time.Second
	// round is how many probes there are at a time, and twice as many before the waits are long: so
	// an outage of ten minutes costs 5 % of the calls at 20 records a second.
	round = 10
	// inVain is how many runs may fail one after the other while a hold ends.
	inVain = 50
	// hanging is the time after which a probe that does not return no longer keeps a hold.
	hanging = 5 * time.Minute
	// quiet is how long a hold goes on though no record of the source waits: the next one may come
	// in a moment, and without a hold it and a hundred more would be calls.
	quiet = time.Minute
)

// hold says which records run while a topic is held: rounds of probes, and once one of them was
// good, as many at a time as succeeded, and one.
type hold struct {
	epoch   uint32        // counts the holds
	at      time.Duration // the next round, or look
	wait    time.Duration // after that
	probes  int           // that the round has left
	running int
	width   int // how many runs there may be at a time; 0 while there are rounds
	failed  int // one after the other, since then
	rounds  int // since the last rest
	started int // runs since the last round or look
	began   time.Duration
	// patience is how long the hold goes on without runs, as the last look said, and since when
	// that is so.
	patience, since time.Duration
}

// start begins a hold.
func (h *hold) start(now time.Duration) {
	*h = hold{epoch: h.epoch + 1, wait: firstWait, began: now}
	h.rest(now)
}

// rest waits for a round.
func (h *hold) rest(now time.Duration) {
	h.probes, h.width, h.failed, h.rounds, h.started = 0, 0, 0, 0, 0
	h.later(now)
}

// later sets the time of the next round, and doubles the wait after it.
func (h *hold) later(now time.Duration) {
	h.at = now + h.wait
	h.wait = min(2*h.wait, longestWait)
}

// begin begins a run, if there may be one. It reports whether that is a probe.
func (h *hold) begin(now time.Duration) (probe, ok bool) {
	if probe = h.width == 0; probe {
		if h.probes == 0 {
			return true, false
		}
		h.probes--
	} else if h.running >= h.width {
		return false, false
	}
	h.running++
	h.started++
	h.began = now
	return probe, true
}

// end ends a run. It reports whether nothing waits for a run any more, as far as the hold knows.
func (h *hold) end(now time.Duration, probe bool, o Outcome) (over bool) {
	h.running--
	switch {
	case o == Void:
		if probe {
			h.probes++
		}
		return false
	case o.bad():
		if h.failed++; h.width > 0 && h.failed >= inVain {
			h.rest(now)
		}
		return false
	}
	h.failed = 0
	if h.width++; h.width == 1 {
		h.width, h.at = 2, now+firstWait
	}
	return h.running < h.width/2
}

// unused reports whether no record waits for a run: none began for a time, though one might have.
// most bounds that time, whatever keeps records from running meanwhile. Once a probe was good,
// nobody waits for a hold but retries.
func (h *hold) unused(now, patience, most time.Duration) bool {
	switch {
	case h.running > 0:
		patience = max(patience, hanging)
	case h.width > 0:
		patience = longestWait
	}
	if patience != h.patience {
		h.patience, h.since = patience, now
	}
	lasts := now - h.began
	return h.rounds > 0 && h.started == 0 && (min(lasts, now-h.since) >= patience || lasts >= max(patience, most))
}

// next begins a round. Runs that do not return hold up neither a round nor what follows it.
func (h *hold) next(now time.Duration) {
	h.started = 0
	h.rounds++
	if h.width > 0 {
		h.width = max(h.width, h.running+2)
		h.at = now + firstWait
		return
	}
	h.probes = round
	if h.wait < longestWait {
		h.probes = 2 * round
	}
	h.probes = max(h.probes-h.running, 1)
	h.later(now)
}
