package chaos

import (
	"cmp"
	"os/exec"
	"testing"
)

// A member that a record has killed ended then, also if a fault ends it later.
func TestMember_EndsOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*member){"kill": (*member).kill, "term": (*member).term} {
		for _, by := range []int64{0, 7} {
			cmd := exec.Command("true")
			if err := cmp.Or(cmd.Start(), cmd.Wait()); err != nil {
				t.Fatal(err)
			}
			p := &process{cmd: cmd, exited: make(chan struct{})}
			close(p.exited)
			m := &member{proc: p, facts: facts{ended: by}}
			if end(m); m.ended == 0 || by != 0 && m.ended != by {
				t.Errorf("%s: ended at %d, want %d", name, m.ended, by)
			}
		}
	}
}
