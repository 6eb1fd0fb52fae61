package dlq

// line is the letters of one partition that are not written yet. Normally the client has all of them. When a batch was too large,
// those that were in it go one at a time, when nothing else of the writer is under way to the partition; what comes meanwhile is held
// behind them.
type line struct {
	underWay int
	alone    []*draft // to be sent one at a time
	held     []*draft
	single   bool // the one that is under way is alone
}

// take takes a letter in. now reports whether it goes to the client at once; it is refused where max are held.
func (l *line) take(d *draft, max int) (now, ok bool) {
	if !l.single && len(l.alone) == 0 {
		l.underWay++
		return true, true
	}
	if len(l.held) >= max {
		return false, false
	}
	l.held = append(l.held, d)
	return false, true
}

// back takes a letter from the client.
func (l *line) back() { l.underWay, l.single = l.underWay-1, false }

// next returns what goes to the client now.
func (l *line) next() (all []*draft) {
	if l.underWay > 0 {
		return nil
	}
	if len(l.alone) > 0 {
		all, l.alone = l.alone[:1:1], l.alone[1:]
		l.single = true
	} else {
		all, l.held = l.held, nil
	}
	l.underWay = len(all)
	return all
}

func (l *line) empty() bool { return l.underWay == 0 && len(l.alone) == 0 && len(l.held) == 0 }
