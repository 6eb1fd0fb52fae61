package quota

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A client that is throttled again and again has answers in between: the throttle lasts through
// these, is that of the slowest broker, and is over soon after the last one.
func TestThrottles_LastFromAnswerToAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all Throttles
		looks := func(wait time.Duration, want string) {
			t.Helper()
			if got, why := all.Now(time.Now()); got != wait || !strings.HasPrefix(why, want) || (why == "") != (want == "") {
				t.Errorf("a wait of %v, %q; want %v, %q", got, why, wait, want)
			}
		}
		looks(0, "")
		for range 3 {
			all.OnBrokerThrottle(kgo.BrokerMetadata{NodeID: 1}, 20*time.Second, true)
			time.Sleep(10 * time.Second)
			all.OnBrokerThrottle(kgo.BrokerMetadata{NodeID: 2}, 3*time.Second, true)
			time.Sleep(15 * time.Second)
			looks(20*time.Second, "broker 1 throttles this process since 2000-01-01T00:00:00Z, by 20s at last")
		}
		time.Sleep(lingers)
		looks(0, "")
	})
}
