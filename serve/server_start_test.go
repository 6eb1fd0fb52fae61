package serve_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// Six requests that each retry one letter began one run, and five were refused since it went on.
// They are one run. Those that come while it goes on wait, and a letter that cannot be sent refuses
// no other one.
func TestServer_RetriesOfSingleLettersAreOneRun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 8)
		is.broken.Store(false)
		is.letterFor("gone", "http.503", time.Now()) // its offset is 8
		is.serve(serve.Config{Refresh: time.Second})
		is.within(time.Minute, "the letters are known", func() bool { return is.known().Open == 9 })
		page := func(path, text string) func() bool {
			return func() bool { return strings.Contains(get(t, is.Server, path), text) }
		}
		is.within(time.Minute, "the page has them", page("/topics/orders.dlq", "9 open"))
		is.letterFor("gone", "http.503", time.Now())
		is.within(5*time.Second, "the page has another one at once, since its version is another", page("/topics/orders.dlq", "10 open"))
		retry := func(offset int, into any) int {
			return is.ask(http.MethodPost, fmt.Sprintf("/topics/orders.dlq/letters/0/%d/redrive", offset), `{"why":"fixed"}`, into)
		}
		var sent sync.WaitGroup
		var runs [6]api.Run
		for i := range runs {
			sent.Go(func() {
				if code := retry(i, &runs[i]); code != http.StatusAccepted {
					t.Errorf("letter %d: %d", i, code)
				}
			})
		}
		sent.Wait()
		for i := range runs {
			if runs[i].ID != runs[0].ID {
				t.Errorf("letter %d is in run %s, and letter 0 in run %s", i, runs[i].ID, runs[0].ID)
			}
		}
		if all := ask[[]api.Run](is, "/runs"); len(all) != 1 || all[0].Counts.Selected != 6 {
			t.Errorf("the runs are %+v", all)
		}
		var codes [3]int
		for i := range codes {
			sent.Go(func() { codes[i] = retry(6+i, nil) })
		}
		sent.Wait()
		if codes != [3]int{http.StatusAccepted, http.StatusAccepted, http.StatusConflict} {
			t.Errorf("two letters while a run goes on, and one of a group that is gone: %d", codes)
		}
		is.within(10*time.Minute, "all came home", func() bool { return is.done.Load() == 8 })
	})
}
