package main

// asBefore is how much of an earlier commit's rate siding keeps at least; its CPU and times may be
// 1.02.
const asBefore = 0.98

// against makes a bench compare siding with the binary of an earlier commit, which takes the bare
// program's place in the turns and in the ratios.
func against(exe string, lines []line, arms []arm) (ratios []line, both []arm) {
	for _, a := range arms {
		if a.name == "siding" {
			both = append(both, a)
			a.name, a.exe = "before", exe
			both = append(both, a)
		}
	}
	for _, l := range lines {
		if l.unit == "x" && l.absolute != nil && len(both) > 0 {
			ratios = append(ratios, l.before())
		}
	}
	return ratios, both
}

// before is the line with the earlier program in the bare one's place.
func (l line) before() line {
	of, absolutes := l.of, l.absolute
	inPlace := func(round map[string]report) map[string]report {
		return map[string]report{"siding": round["siding"], "bare": round["before"]}
	}
	l.name += "-before"
	l.of = func(round map[string]report) float64 { return of(inPlace(round)) }
	l.absolute = func(round map[string]report) []absolute {
		all := absolutes(inPlace(round))
		for i := range all {
			if all[i].Program == "bare" {
				all[i].Program = "before"
			}
		}
		return all
	}
	if l.goal.least {
		l.goal = atLeast(asBefore)
	} else {
		l.goal = atMost(1.02)
	}
	return l
}
