package connect

import (
	"errors"

	"github.com/sidingkafka/siding/internal/redact"
)

// redaction reads what to hide. The places where settings come from add up: a flag hides one more
// thing, and what the profile hides stays hidden.
func (r *resolver) redaction(nothing bool) {
	paths, headers, patterns := r.all(hidePaths), r.all(hideHeaders), r.all(hidePattern)
	rules, err := redact.Parse(paths, headers, patterns)
	switch {
	case err != nil:
		r.errs = append(r.errs, err)
	case !nothing:
		r.cluster.Redact = rules
		r.cluster.RedactTexts = RedactTexts{texts(paths), texts(headers), texts(patterns)}
	}
}

func texts(rules []redact.Text) (all []string) {
	for _, t := range rules {
		all = append(all, t.Text)
	}
	return all
}

// Redaction returns a cluster that has only what to hide, by flags and variables. Profiles are of
// other clusters, and do not count.
func (f *Flags) Redaction(env Environment) (*Cluster, error) {
	r := &resolver{layers: layers{commandLine(f.set), variables(env.Getenv)}, cluster: &Cluster{}}
	r.redaction(f.showAll)
	return r.cluster, errors.Join(r.errs...)
}
