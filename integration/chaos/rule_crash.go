package chaos

import (
	"fmt"
	"slices"
)

// crashLimit is the consumer's.
const crashLimit = 3

// crashLoop: the records that kill their process do so at most crashLimit + 1 times for the first
// of a service, and twice for each further one. No other record gets that reason.
func crashLoop(ev *evidence, f *findings) {
	for _, s := range ev.services {
		deaths, poisons := 0, 0
		for _, r := range s.records {
			if r.script.act == actKill {
				poisons++
				deaths += len(r.runs)
			}
			for _, c := range r.letters {
				if string(c.meta.Reason) == reasonCrashLoop && r.script.act != actKill {
					f.add(r, c.rec, r.runs, "it is a letter with reason %s, and kills nothing", reasonCrashLoop)
				}
			}
		}
		if most := crashLimit + 1 + 2*(poisons-1); poisons > 0 && deaths > most {
			f.broken = append(f.broken, Violation{
				Rule: f.rule, Record: -1, Topic: s.Topics[0], Partition: -1, Offset: -1,
				Text: fmt.Sprintf("%d records killed %d processes, at most %d are allowed", poisons, deaths, most),
			})
		}
	}
}

// poisonIn returns the record that killed a member, or nil.
func (ev *evidence) poisonIn(m *member) *record {
	for _, s := range ev.services {
		for _, r := range s.records {
			if r.script.act == actKill && slices.ContainsFunc(r.runs, func(x *run) bool { return x.member == m.job.Name && x.end == 0 }) {
				return r
			}
		}
	}
	return nil
}
