package guard

// Round returns the number of the round of probes: a record that failed as a probe in an earlier
// one may run again.
func (t *Topic) Round() int64 {
	if t == nil {
		return 0
	}
	return t.round.Load()
}

// Failed returns the round in which a probe has failed that ends now. While a hold ends there are
// no rounds: its record may run again at once.
func (t *Topic) Failed() int64 {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.g.hold.width > 0 {
		return t.round.Load() - 1
	}
	return t.round.Load()
}
