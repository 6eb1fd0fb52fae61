package inflight

import "time"

// silences counts the unfollowed letters that were sent so lately that they may still fail.
type silences struct {
	sent   []silence // the earliest first
	failed int64     // of these letters
}

// silence counts unfollowed letters that were sent at a time.
type silence struct {
	since   time.Time
	letters int64
}

// add adds letters that are sent now.
func (s *silences) add(letters int64) {
	if letters > 0 {
		s.sent = append(s.sent, silence{time.Now(), letters})
	}
}

// take removes the letters that were sent before a time, and returns how many have not failed.
func (s *silences) take(before time.Time) (letters int64) {
	for len(s.sent) > 0 && s.sent[0].since.Before(before) {
		failed := min(s.failed, s.sent[0].letters)
		letters += s.sent[0].letters - failed
		s.failed -= failed
		s.sent = s.sent[1:]
	}
	return letters
}
