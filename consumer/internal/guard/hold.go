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
	// waited is which share of its patience a hold has waited for a run of a record that has not
	// failed as a probe, as the last look at a time had it.
	waited float64
	looked time.Duration
}

// start begins a hold.
func (h *hold) start(now time.Duration) {
	*h = hold{epoch: h.epoch + 1, wait: firstWait, looked: now}
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

// begin begins a run, if there may be one. It reports whether that is a probe. fails says that the
// record has failed as one.
func (h *hold) begin(now time.Duration, fails bool) (probe, ok bool) {
	if probe = h.width == 0; probe {
		if h.probes == 0 {
			return true, false
		}
		h.probes--
	} else if h.running >= h.width {
		return false, false
	}
	h.running++
	if !probe || !fails {
		h.started++
		h.waited, h.looked = 0, now
	}
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

// unused reports whether nothing but retries waits for the hold's end: no record ran for a time,
// but for some that have failed as probes.
func (h *hold) unused(now, patience time.Duration) bool {
	switch {
	case h.running > 0:
		patience = max(patience, hanging)
	case h.width > 0 && patience == quiet:
		patience = longestWait
	}
	if patience > 0 {
		h.waited += float64(now-h.looked) / float64(patience)
	}
	h.looked = now
	return h.rounds > 0 && h.started == 0 && (h.waited >= 1 || patience <= 0)
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
