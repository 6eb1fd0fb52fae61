package chaos

import (
	"testing"
	"time"
)

// A copy whose request may have got no answer has more time to be safe than a record that was
// handled. One of a calm has not.
func TestPrompt_WaitsForRequestsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	for _, test := range []struct {
		name  string
		ended verdict
		kind  string
		at    int64 // when the run ended; the fault is from 60 s to 70 s
		want  int64
	}{
		{"a copy, while a broker is down", verdictFailed, "node", 65 * second, 90 * second},
		{"a letter, soon after", verdictTerminal, "cut", 75 * second, 90 * second},
		{"a copy just before", verdictFailed, "freeze", 58 * second, 90 * second},
		{"a copy before", verdictFailed, "freeze", 50 * second, 50 * second},
		{"a copy in a calm", verdictFailed, "node", 91 * second, 91 * second},
		{"handled", verdictPassed, "node", 65 * second, 65 * second},
		{"discarded", verdictDiscard, "node", 65 * second, 65 * second},
		{"a copy, beside another fault", verdictFailed, "kill", 65 * second, 65 * second},
	} {
		m := &member{job: memberJob{Service: service{Policy: policy{CommitInterval: time.Second}}}}
		ev := &evidence{members: map[string]*member{"a": m}, windows: []window{{test.kind, 60 * second, 70 * second}}}
		last := &run{member: "a", start: test.at - 1, end: test.at, verdict: test.ended}
		if got := ev.finishedAt(&delivered{runs: []*run{last}}); got != test.want {
			t.Errorf("%s: finished at %v, want %v", test.name, time.Duration(got), time.Duration(test.want))
		}
	}
}
