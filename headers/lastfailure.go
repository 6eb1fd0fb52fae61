package headers

import "time"

// lastFailure is the failure of an encoder's last call, if its history had one entry.
type lastFailure struct {
	meta    Meta
	attempt Attempt
	fields  []byte // its encoded fields; nil if there is none
}

// repeats reports whether a failure has the headers of the last one, but for those that repeat
// encodes. In a storm, many records of a partition fail for the first time with the same error in
// the same millisecond.
func (l *lastFailure) repeats(now *Meta) bool {
	if l.fields == nil || len(now.History) != 1 || now.Stack != "" || stamped(&now.Original) != stamped(&l.meta.Original) {
		return false
	}
	a, b, was := &now.History[0], &l.attempt, &l.meta
	return now.Original.Partition == was.Original.Partition && now.NotBefore.IsZero() == was.NotBefore.IsZero() &&
		now.Message == was.Message && now.Class == was.Class && now.Group == was.Group && now.Fingerprint == was.Fingerprint &&
		now.Hops == was.Hops && now.Attempts == was.Attempts && now.Held == was.Held && now.ValueOmitted == was.ValueOmitted &&
		now.Reason == was.Reason && sameMilli(now.FailedAt, was.FailedAt) && sameMilli(now.FirstFailedAt, was.FirstFailedAt) &&
		now.Original.TopicID == was.Original.TopicID && now.Original.Topic == was.Original.Topic &&
		now.TraceParent == was.TraceParent && now.Version == was.Version && now.Environment == was.Environment && now.Host == was.Host &&
		a.Message == b.Message && a.Class == b.Class && a.Number == b.Number && a.Run == b.Run && a.Verdict == b.Verdict && sameMilli(a.At, b.At)
}

// keep keeps a failure with the encoding of its fields, if it may repeat and holds no long text.
func (l *lastFailure) keep(now *Meta, fields []byte) {
	if l.fields = nil; len(now.History) == 1 && now.Stack == "" && len(now.Message) <= MaxMessage {
		l.meta, l.attempt, l.fields = *now, now.History[0], fields
		l.meta.History = nil
	}
}

// stamped reports whether the timestamp of an original record is written.
func stamped(p *Position) bool { return p.Topic != "" && !p.Timestamp.IsZero() }

// sameMilli reports whether two times are written alike. The zero time is not written.
func sameMilli(a, b time.Time) bool { return millis(a) == millis(b) && a.IsZero() == b.IsZero() }
