package retrytopics

import "time"

// RetentionOf is how long a tier of this delay keeps a record, by the spec: no
// record in it can be due later than that after it was written. Negative means
// for ever.
func (s Spec) RetentionOf(delay time.Duration) time.Duration { return s.tierRetention(delay) }
