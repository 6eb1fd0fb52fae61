package classify

import "strings"

const (
	maxScanned = 4096 // bytes of a message that are read
	maxMasked  = 512  // bytes of a masked message
	maxFrame   = 256  // bytes of a frame that count
)

// Mask returns a message without what differs from one failure of a bug to the next: numbers,
// times, ids, addresses, codes, names and quoted text. Messages with the same mask, class and top
// frame have the same fingerprint. It reads the first 4096 bytes and returns at most 512, and a
// mask is its own mask. See docs/classification.md for what it keeps.
func Mask(message string) string {
	var m masker
	m.message(message)
	return string(m.buf[:m.n])
}

// masker collects a masked message, and with it the input of a fingerprint. It is one array without
// a slice into it, so that it stays on the stack.
type masker struct {
	buf      [MaxClass + 1 + maxMasked + 1 + maxFrame + 1]byte
	n        int     // bytes of buf that are used
	limit    int     // bytes that the message may fill
	hash     int     // index after the last "#", -1 if other text followed
	full     bool    // something did not fit
	unclosed [3]bool // kinds of quotes without a closing one further on
	before   preface // what the next word is announced by
	quiet    answer  // whether the message has a lower-case letter
}

// preface is what stands before a word.
type preface uint8

const (
	unannounced preface = iota
	announcer           // a word such as "customer"
	named               // a name that was announced
)

// answer is that to a question which costs something to ask.
type answer uint8

const (
	notAsked answer = iota
	yes
	no
)

// failure adds the input of a fingerprint.
func (m *masker) failure(class, message, frame string) {
	m.verbatim(class)
	m.message(message)
	m.verbatim("")
	m.verbatim(frame[:min(len(frame), maxFrame)])
}

// verbatim adds s and the NUL that ends it.
func (m *masker) verbatim(s string) {
	m.n += copy(m.buf[m.n:], s)
	m.buf[m.n] = 0
	m.n++
}

// message adds the mask of s:
//
//   - numbers, signed or not, with units, dates, addresses: "#"
//   - UUIDs, hex, words that mix letters and digits, e-mail, IPv6 and MAC addresses: "#"
//   - a word that ends in digits keeps its letters: "utf8" is "utf#"
//   - codes, announced names, and what stands after "=": see isCode, isName, isValue
//   - several of these in a row, divided by one or two of " ,.:;/+-_": one "#"
//   - text in '…', "…" or `…`: an empty pair of these quotes
//   - white space: one blank
//
// It is a scanner by hand because it runs once per failing record, where a
// regular expression would cost more than forwarding the record does.
func (m *masker) message(s string) {
	s = s[:min(len(s), maxScanned)]
	start := m.n
	m.limit, m.hash = start+maxMasked, -1
	for i := 0; i < len(s) && !m.full; {
		switch kind := charKind[s[i]]; {
		case kind&word != 0:
			i = m.token(s, i)
		case kind&space != 0:
			if m.n > start && m.buf[m.n-1] != ' ' {
				m.put(' ')
			}
			i++
		case kind&quote != 0:
			m.put(s[i])
			if end := closing(s, i, &m.unclosed); end >= 0 {
				m.put(s[i])
				i = end
			}
			i++
		case s[i] == '-' && isSign(s, i):
			i++ // the number follows
		case s[i] == '=' && isValue(s, i):
			m.put('=')
			m.number()
			i = valueEnd(s, i+1)
		default:
			m.put(s[i])
			i++
		}
	}
	m.end(start)
}

// end drops the blank at the end, and the text since the last blank if that is cut: by half a token
// one cannot tell what it is.
func (m *masker) end(start int) {
	if m.full {
		for m.n > start && m.buf[m.n-1] != ' ' {
			m.n--
		}
		if m.n == start {
			m.full, m.limit = false, m.n+1
			m.put('#')
		}
	}
	for m.n > start && m.buf[m.n-1] == ' ' {
		m.n--
	}
}

// token adds the word at s[i], or the address that begins with it, and returns the index after it.
func (m *masker) token(s string, i int) (end int) {
	if isUUID(s[i:]) {
		m.number()
		return i + uuidLen
	}
	some, all := charKind[s[i]], charKind[s[i]]
	for end = i; end < len(s) && charKind[s[end]]&word != 0; end++ {
		some |= charKind[s[end]]
		all &= charKind[s[end]]
	}
	if end < len(s) {
		if address := addressEnd(s, i, end, all); address > 0 {
			m.number()
			return address
		}
	}
	w := s[i:end]
	switch {
	case some&digit != 0:
		m.withDigits(w, all)
	case all&hexDigit != 0 && len(w) >= 8: // hex, not a word
		m.number()
	case m.before != unannounced && isName(w):
		m.number()
		m.before = named
	case isCode(s, i, end) && m.hasLower(s), isDateWord(w) && (m.follows() || datesNumber(s, end)):
		m.number()
	default:
		m.text(w)
		if meetsCapital(s, end) && announces[w] {
			m.before = announcer
		}
	}
	return end
}

// withDigits adds a word with digits. all has the kinds that each of its characters has.
func (m *masker) withDigits(w string, all charClass) {
	letters := 0 // before the first digit
	for charKind[w[letters]]&digit == 0 {
		letters++
	}
	if letters == 0 || all&hexDigit != 0 || !allDigits(w[letters:]) {
		m.number()
		return
	}
	m.text(w[:letters])
	m.number()
}

// number adds "#", or nothing where only dividers stand between it and the last
// one.
func (m *masker) number() {
	m.before = unannounced
	if m.follows() {
		m.n = m.hash
		return
	}
	m.put('#')
	m.hash = m.n
}

// follows reports whether only dividers stand between here and the last "#".
func (m *masker) follows() bool { return m.hash >= 0 && m.n-m.hash <= 2 }

func (m *masker) text(s string) {
	m.hash, m.before = -1, unannounced
	if m.n+len(s) > m.limit {
		m.full = true
		return
	}
	m.n += copy(m.buf[m.n:m.limit], s)
}

func (m *masker) put(c byte) {
	if m.n == m.limit {
		m.full = true
		return
	}
	if charKind[c]&divider == 0 {
		m.hash = -1
	}
	if c != ' ' && (c != ':' || m.before == named) {
		m.before = unannounced
	}
	m.buf[m.n] = c
	m.n++
}

// hasLower reports whether a message has a lower-case letter. In one without, a short word in
// capitals is an ordinary word.
func (m *masker) hasLower(s string) bool {
	if m.quiet == notAsked {
		m.quiet = no
		if strings.ContainsFunc(s, func(r rune) bool { return 'a' <= r && r <= 'z' }) {
			m.quiet = yes
		}
	}
	return m.quiet == yes
}

// closing returns the index of the quote that closes the one at s[i], or -1 if s[i] is an
// apostrophe or is never closed.
func closing(s string, i int, unclosed *[3]bool) int {
	q := s[i]
	kind := strings.IndexByte("'\"`", q)
	if unclosed[kind] || q == '\'' && joined(s, i-1) {
		return -1
	}
	for j := i + 1; j < len(s); j++ {
		switch {
		case s[j] == '\\' && q != '`':
			j++
		case s[j] != q:
		case q == '\'' && joined(s, j+1): // an apostrophe inside
		default:
			return j
		}
	}
	unclosed[kind] = true
	return -1
}
