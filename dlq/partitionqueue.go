package dlq

// partitionQueue is the letters of one partition that are not written yet. Normally the client has
// all of them. If a batch was too large, its letters go one at a time, with nothing else of the
// writer in flight to the partition. Later letters are held until then.
type partitionQueue struct {
	inFlight int
	alone    []*pendingLetter // to be sent one at a time
	held     []*pendingLetter
	single   bool // the letter in flight was sent alone
}

// take adds a letter. now reports whether it goes to the client at once. ok is false if max letters
// are held already.
func (l *partitionQueue) take(d *pendingLetter, max int) (now, ok bool) {
	if !l.single && len(l.alone) == 0 {
		l.inFlight++
		return true, true
	}
	if len(l.held) >= max {
		return false, false
	}
	l.held = append(l.held, d)
	return false, true
}

// next returns the letters to give to the client now.
func (l *partitionQueue) next() (all []*pendingLetter) {
	if l.inFlight > 0 {
		return nil
	}
	if len(l.alone) > 0 {
		all, l.alone = l.alone[:1:1], l.alone[1:]
		l.single = true
	} else {
		all, l.held = l.held, nil
	}
	l.inFlight = len(all)
	return all
}
