package serve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A server lost its rights on a dead-letter topic and its ledger, and notified that its incident
// was over. That could not be noted. When the rights were back, the letters were still open, and no
// receiver was notified: the ledger said that people knew. Nor was one if another server owned the
// topic then.
func TestServer_AHiddenTopicThatComesBackNotifiesAgain(t *testing.T) {
	t.Parallel()
	for servers := 1; servers <= 2; servers++ {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			p := newPager(t)
			cfg := p.config()
			cfg.Topics[0].Alerts.WarnOpen, cfg.Topics[0].Alerts.PageOpen = 1, 3
			columns := serverRights(t)
			all := slices.Concat(columns[:]...)
			guardAs(t, cfg, all, func(is *guarded) {
				is.within(5*time.Minute, "the incident is sent", func() bool { return p.open() == 1 })
				time.Sleep(time.Minute)
				if servers > 1 {
					is.serve(cfg)
					time.Sleep(time.Minute)
				}
				for _, right := range all {
					if strings.HasPrefix(right.Name, "orders.dlq") {
						is.revoke(right)
					}
				}
				is.within(5*time.Minute, "it is over", func() bool { return p.open() == 0 })
				time.Sleep(5 * time.Minute)
				for _, right := range all {
					if strings.HasPrefix(right.Name, "orders.dlq") {
						is.grant(right)
					}
				}
				is.within(5*time.Minute, "the incident is sent again", func() bool { return p.open() == 1 })
				time.Sleep(5 * time.Minute)
				if all := p.received(""); len(all) != 3 || p.open() != 1 {
					is.t.Errorf("received %q", all)
				}
			})
		})
	}
}
