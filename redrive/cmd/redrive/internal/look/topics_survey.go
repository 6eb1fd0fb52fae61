package look

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	"github.com/sidingkafka/siding/retrytopics"
)

// survey is the flags of topics.
type survey struct {
	parked, quick, all bool
	filters            []string
}

// check returns what is wrong with the flags.
func (how survey) check() error {
	var errs []error
	if how.parked && how.quick {
		errs = append(errs, errors.New("--parked and --quick: retry topics are not read, so omit one"))
	}
	if how.parked && how.all {
		errs = append(errs, errors.New("--parked and --all: all retry topics are listed, so omit --all"))
	}
	for _, f := range how.filters {
		if _, err := path.Match(f, ""); err != nil {
			errs = append(errs, fmt.Errorf("--filter: %q is not a pattern: * is any text, ? any character, [abc] one of these", f))
		}
	}
	return errors.Join(errs...)
}

// fits reports whether a topic's name fits one of the filters.
func (how survey) fits(topic string) bool {
	return len(how.filters) == 0 || slices.ContainsFunc(how.filters, func(f string) bool {
		ok, _ := path.Match(f, topic) // a topic's name has no slash
		return ok || !strings.ContainsAny(f, `*?[\`) && strings.Contains(topic, f)
	})
}

// choose finds the cluster's topics of a kind that fit the filters, and prints where there are
// none.
func (how survey) choose(ctx context.Context, s *cli.Session, kind retrytopics.Kind) ([]subject.Sibling, error) {
	all, err := s.Admin.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	found := subject.Siblings(all, s.Naming, kind)
	topics := "dead-letter topics"
	if kind == retrytopics.KindRetry {
		topics = "retry topics"
	}
	fit := slices.DeleteFunc(slices.Clone(found), func(f subject.Sibling) bool { return !how.fits(f.Topic) })
	switch {
	case len(found) == 0:
		s.Screen.Print("no %s are named like %s, or this user may see none", topics, subject.TemplateOf(s.Naming, kind))
	case len(fit) == 0:
		s.Screen.Print("none of the %d %s fits --filter %s", len(found), topics, strings.Join(how.filters, " or "))
	}
	return fit, nil
}

// warnOfProblems warns of what a list could not show.
func warnOfProblems(t *cli.Tool, problems []error) {
	for _, p := range problems {
		t.Screen.Warn("%v", p)
	}
}
