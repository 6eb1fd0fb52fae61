package logthrottle

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogThrottle_LogsAMessageOnceAnInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q Throttle
		said := map[string]int{}
		say := func(key string) { q.Once(key, time.Minute, func() { said[key]++ }) }
		for range 100 {
			say("a")
			say("b")
		}
		time.Sleep(59 * time.Second)
		say("a")
		if said["a"] != 1 || said["b"] != 1 {
			t.Errorf("said %v within a minute, want each once", said)
		}
		time.Sleep(time.Second)
		say("a")
		say("a")
		if said["a"] != 2 || said["b"] != 1 {
			t.Errorf("said %v after a minute, want a twice", said)
		}
		others := 0
		for i := range 5000 {
			q.Once(fmt.Sprint(i), time.Minute, func() { others++ })
		}
		if n := len(q.next); n > 1000 {
			t.Errorf("%d keys are kept", n)
		}
		if others > 1000 {
			t.Errorf("of 5,000 messages %d are said at once, want those that there is room for, and one for the rest", others)
		}
		if say("a"); said["a"] != 2 {
			t.Error("a is said twice within a minute, since there were many others")
		}
		time.Sleep(time.Minute)
		q.Once("new", time.Minute, func() { others = -1 })
		if n := len(q.next); others != -1 || n > 1 {
			t.Errorf("after a minute %d keys are kept, want the new one", n)
		}
		q.Once("outer", time.Minute, func() { say("inner") }) // from within: no deadlock
	})
}
