package chaos

import (
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The first record of a physical partition that kills may do so four times, a further one twice;
// one that was written after the last death by those before it is the first one again.
func TestCrashLoop_CountsDeathsByWindow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		deaths  []int
		written []time.Duration // the n-th process dies n minutes after the start
		want    int
	}{
		{"four", []int{4}, []time.Duration{0}, 0},
		{"five", []int{5}, []time.Duration{0}, 1},
		{"two records", []int{4, 2}, []time.Duration{0, 0}, 0},
		{"two records, one death too many", []int{4, 3}, []time.Duration{0, 0}, 1},
		{"written as the first one still kills", []int{4, 3}, []time.Duration{0, 3 * time.Minute}, 1},
		{"written after the first one's end", []int{4, 4}, []time.Duration{0, 5 * time.Minute}, 0},
		{"written after the first one's end, one death too many", []int{4, 5}, []time.Duration{0, 5 * time.Minute}, 1},
	} {
		ev := &evidence{members: map[string]*member{}, told: map[string]told{}}
		retry := &feed{tp: tp{"orders.retry.5s", 0}, at: map[int64]*delivered{}}
		died := 0
		for i, deaths := range test.deaths {
			d := &delivered{of: &record{script: script{act: actKill}}, copy: &copied{rec: &kgo.Record{Timestamp: time.Unix(0, 0).Add(test.written[i])}}}
			for range deaths {
				died++
				name := strconv.Itoa(died)
				end := time.Duration(died) * time.Minute
				ev.members[name] = &member{ended: int64(end)}
				d.runs = append(d.runs, &run{member: name, attempt: 1, start: int64(end - time.Second)})
			}
			retry.at[int64(i)] = d
		}
		f := findings{rule: "crash-loop", counted: map[string]int{}, excluded: map[string]int{}}
		if ev.deathsIn(retry, &f); len(f.broken) != test.want {
			t.Errorf("%s: found %v, want %d", test.name, f.broken, test.want)
		}
	}
}
