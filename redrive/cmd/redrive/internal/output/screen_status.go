package output

import (
	"fmt"
)

// Status writes the status line, which the next status or anything else that is written removes. An
// empty status only removes it. Without a terminal Status does nothing.
func (s *Screen) Status(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setStatus(fmt.Sprintf(format, escapeAll(args)...))
}

// StatusOf is Status with the first of several forms for which the terminal is wide enough. Where
// none is, the last one is cut.
func (s *Screen) StatusOf(forms ...string) {
	room := s.room()
	for i, form := range forms {
		if form = Escape(form); room == 0 || width(form) <= room || i == len(forms)-1 {
			s.Status("%s", form)
			return
		}
	}
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
	if room := s.room(); room > 0 {
		status = cut(status, room)
	}
	fmt.Fprint(s.words, status)
	s.hasStatus = status != ""
}

// room is how wide a status may be: less than the terminal, whose last column would move the
// cursor. Zero is any width.
func (s *Screen) room() int { return max(0, s.width(s.words)-1) }
