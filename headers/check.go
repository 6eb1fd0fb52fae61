package headers

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/internal/reserved"
)

// CheckRetry returns an error unless m is plausible on a retry topic. Parse read m from a record
// there. written is the record's own timestamp, the broker's time of writing. If the broker's clock
// may be behind, it is the reader's time if that is later. retention is the tier's; zero or less
// means unlimited.
//
// A record in a tier has its original topic (and so partition, offset and attempts), its group and
// its due time. If it has attempts it also has the class and the times of its failures. It must be
// due before the tier's retention ends: a forged or broken due time would otherwise park it for
// ever, or retention would delete it. The error is a *FieldError.
func (m *Meta) CheckRetry(written time.Time, retention time.Duration) error {
	missing := func(key string) error { return &FieldError{Key: key, Err: ErrMissing} }
	switch {
	case m.Original.Topic == "":
		return missing(OriginalTopic)
	case m.Group == "":
		return missing(Group)
	case m.NotBefore.IsZero():
		return missing(NotBefore)
	}
	if m.Attempts > 0 {
		switch {
		case m.Class == "":
			return missing(ErrorClass)
		case m.FirstFailedAt.IsZero():
			return missing(reserved.FirstFailedAt.String())
		case m.FailedAt.IsZero():
			return missing(FailedAt)
		}
	}
	if last := written.Add(retention); retention > 0 && m.NotBefore.After(last) {
		return &FieldError{
			Key:   NotBefore,
			Value: fmt.Sprint(m.NotBefore.UnixMilli()),
			Err:   fmt.Errorf("%w: due after %s, when the topic may forget the record", ErrRange, last.UTC().Format(time.RFC3339)),
		}
	}
	return nil
}
