package chaos

import (
	"cmp"
	"os/exec"
	"testing"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
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
			m := &member{proc: p, Member: trace.Member{Ended: by}}
			if end(m); m.Ended == 0 || by != 0 && m.Ended != by {
				t.Errorf("%s: ended at %d, want %d", name, m.Ended, by)
			}
		}
	}
}
