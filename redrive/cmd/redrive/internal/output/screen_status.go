package output

import (
	"fmt"
)

// Status writes the status line, which the next status or anything else that is written removes. An
// empty status only removes it. Without a terminal Status does nothing.
func (s *Screen) Status(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setStatus(fmt.Sprintf(format, s.escapeAll(args)...))
}

// HasStatus reports whether [Screen.Status] shows anything.
func (s *Screen) HasStatus() bool { return s.wordsTTY }

// setStatus replaces the status line. It stays on one line: of two, only the second could be
// removed again. The caller holds the lock.
func (s *Screen) setStatus(status string) {
	if !s.wordsTTY || status == "" && !s.hasStatus {
		return
	}
	if s.hasStatus {
		fmt.Fprint(s.words, "\r\x1b[K")
	}
	// less than the terminal, whose last column would move the cursor
	if room := s.width(s.words) - 1; room > 0 {
		status = cut(status, room)
	}
	fmt.Fprint(s.words, status)
	s.hasStatus = status != ""
}
