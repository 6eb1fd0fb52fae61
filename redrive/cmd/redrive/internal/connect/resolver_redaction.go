package connect

import "github.com/sidingkafka/siding/redrive/cmd/redrive/internal/redact"

// redaction reads what to hide. The places where settings come from add up: who hides one more
// thing by a flag still hides what the profile hides.
func (r *resolver) redaction(nothing bool) {
	rules, err := redact.Parse(r.all(hidePaths), r.all(hideHeaders), r.all(hidePattern))
	switch {
	case err != nil:
		r.errs = append(r.errs, err)
	case !nothing:
		r.cluster.Redact = rules
	}
}
