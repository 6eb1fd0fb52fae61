package console

import (
	"testing"

	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/serve/api"
)

// Whoever looks at a topic or a letter reads whose it is and what to do, as the configuration has
// it and not as markup. The overview has none of it. The runbook is a link to a site, which learns
// nothing of this page; what is no site's address is not followed.
func TestPeople_StandOnTheTopicAndItsLetters(t *testing.T) {
	t.Parallel()
	links := func(s *specimen, path string) (all []*html.Node) {
		for _, n := range parse(t, ask(s, path).Body) {
			if n.Data == "a" && textOf(n) == "Runbook" {
				all = append(all, n)
			}
		}
		return all
	}
	for _, path := range []string{"/topics/orders.dlq", "/topics/orders.dlq?state=failed", "/topics/orders.dlq/letters/1/5"} {
		s := newSpecimen(plain)
		s.people = api.Topic{Owner: "team <b>billing</b>", Runbook: runbook, Note: "call ops <i>first</i>"}
		has(t, path, look(t, s, path), "Owner: team <b>billing</b> Runbook", "call ops <i>first</i>")
		if all := links(s, path); len(all) != 1 || !isRunbook(all[0]) {
			t.Errorf("%s: the links are %+v", path, all)
		}
		for _, bad := range []string{"javascript:alert(1)", "//wiki.example.com", "data:text/html,x", "http:wiki", ":"} {
			s.people = api.Topic{Runbook: bad}
			has(t, path, look(t, s, path), "Runbook: "+bad)
			for _, n := range parse(t, ask(s, path).Body) {
				if attr(n, "href") == bad {
					t.Errorf("%s leads to %s", path, bad)
				}
			}
		}
	}
	s := newSpecimen(plain)
	s.people = api.Topic{Runbook: runbook}
	if all := links(s, "/"); len(all) > 0 {
		t.Errorf("the overview has %d runbooks", len(all))
	}
	if m := newPeopleModel(&api.Topic{}); m != nil {
		t.Errorf("of a topic without people it says %+v", m)
	}
}
