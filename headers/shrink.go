package headers

import "math/bits"

// Size returns the number of bytes that the headers of m take in a Kafka record.
func (m *Meta) Size() int {
	n := 0
	for _, h := range m.Append(nil) {
		n += prefixed(len(h.Key)) + prefixed(len(h.Value))
	}
	return n
}

// prefixed returns the size of n bytes after their length, a zigzag varint.
func prefixed(n int) int { return (bits.Len(uint(n)<<1|1)+6)/7 + n }

// Shrink shortens m until its headers take at most size bytes in a record (see Size), and reports
// whether it succeeded. It drops the least important parts first, and no more than necessary: the
// history from its oldest entry on, then the stack from its last line on, then the end of the
// message. It changes nothing else.
func (m *Meta) Shrink(size int) bool {
	over := m.Size() - size
	if over <= 0 {
		return true
	}

	m.History = m.writtenHistory()
	for len(m.History) > 0 && over > 0 {
		drop := 1
		for cut := m.History[0].size(); cut < over && drop < len(m.History); drop++ {
			cut += m.History[drop].size()
		}
		m.History = m.History[drop:]
		over = m.Size() - size
	}

	if m.Reason != "" { // else it is not written
		m.Stack = string(appendText(nil, m.Stack, MaxStack))
		for m.Stack != "" && over > 0 {
			m.Stack = cutLines(m.Stack, len(m.Stack)-over)
			over = m.Size() - size
		}
	}

	m.Message = string(appendText(nil, m.Message, MaxMessage))
	for m.Message != "" && over > 0 {
		m.Message = cut(m.Message, len(m.Message)-over)
		over = m.Size() - size
	}
	return over <= 0
}

// cutLines shortens s to limit bytes, and to whole lines.
func cutLines(s string, limit int) string {
	for limit = max(limit, 0); limit > 0; limit-- {
		if s[limit-1] == '\n' {
			return s[:limit]
		}
	}
	return ""
}
