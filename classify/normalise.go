package classify

import "strings"

// appendNormalised appends message to b, up to a length of limit, without what
// differs from one record to the next:
//
//   - numbers, signed or not, with units, dates, addresses: "#"
//   - UUIDs, hex, and words that mix letters and digits: "#"
//   - a word that ends in digits keeps its letters: "utf8" is "utf#"
//   - several of these in a row, divided by one or two of " ,.:;/+-_": one "#"
//   - text in '…', "…" or `…`: an empty pair of these quotes
//   - white space: one blank
//
// It is a scanner by hand because it runs once per failing record, where a
// regular expression would cost more than forwarding the record does.
func appendNormalised(b []byte, message string, limit int) []byte {
	s := message[:min(len(message), maxScanned)]
	n := normaliser{b: b, start: len(b), limit: limit, hash: -1}
	for i := 0; i < len(s) && len(n.b) < limit; {
		switch kind := charKind[s[i]]; {
		case kind&word != 0:
			end := i + 1
			if isUUID(s[i:]) {
				end = i + uuidLen
				n.number()
			} else {
				for end < len(s) && charKind[s[end]]&word != 0 {
					end++
				}
				n.word(s[i:end])
			}
			i = end
		case kind&space != 0:
			n.blank()
			i++
		case kind&quote != 0:
			end := closing(s, i, &n.unclosed)
			if end < 0 {
				n.literal(s[i])
				i++
				continue
			}
			n.literal(s[i])
			n.literal(s[i])
			i = end + 1
		case s[i] == '-' && i+1 < len(s) && charKind[s[i+1]]&digit != 0 && (i == 0 || charKind[s[i-1]]&word == 0):
			i++ // a sign: the number follows
		default:
			n.literal(s[i])
			i++
		}
	}
	return n.finish()
}

type normaliser struct {
	b            []byte
	start, limit int
	hash         int     // index behind the last "#", -1 where something else followed
	unclosed     [3]bool // kinds of quotes that have no closing one further on
}

// number writes "#", or nothing where only dividers stand between it and the
// last one.
func (n *normaliser) number() {
	if n.hash >= 0 && len(n.b)-n.hash <= 2 {
		n.b = n.b[:n.hash]
		return
	}
	n.b = append(n.b, '#')
	n.hash = len(n.b)
}

// word writes a run of letters and digits.
func (n *normaliser) word(w string) {
	letters := 0 // before the first digit
	for letters < len(w) && charKind[w[letters]]&digit == 0 {
		letters++
	}
	onlyHex := true
	trailing := true // nothing but digits after the letters
	for i := range len(w) {
		k := charKind[w[i]]
		onlyHex = onlyHex && k&hexDigit != 0
		if i >= letters && k&digit == 0 {
			trailing = false
		}
	}
	switch {
	case letters == len(w): // no digit
		if onlyHex && len(w) >= 8 {
			n.number()
			return
		}
		n.text(w)
	case letters == 0, onlyHex, !trailing:
		n.number()
	default:
		n.text(w[:letters])
		n.number()
	}
}

func (n *normaliser) text(w string) {
	n.hash = -1
	n.b = append(n.b, w[:min(len(w), n.limit-len(n.b))]...)
}

func (n *normaliser) literal(c byte) {
	if charKind[c]&divider == 0 {
		n.hash = -1
	}
	n.b = append(n.b, c)
}

func (n *normaliser) blank() {
	if len(n.b) > n.start && n.b[len(n.b)-1] != ' ' {
		n.b = append(n.b, ' ')
	}
}

func (n *normaliser) finish() []byte {
	b := n.b[:min(len(n.b), n.limit)]
	if len(b) > n.start && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// closing returns the index of the quote that closes the one at s[i], or -1
// where that one is an apostrophe or is never closed.
func closing(s string, i int, unclosed *[3]bool) int {
	q := s[i]
	kind := strings.IndexByte("'\"`", q)
	if unclosed[kind] || i > 0 && charKind[s[i-1]]&word != 0 {
		return -1
	}
	for j := i + 1; j < len(s); j++ {
		switch {
		case s[j] == '\\' && q != '`':
			j++
		case s[j] != q:
		case q == '\'' && j+1 < len(s) && charKind[s[j+1]]&word != 0: // an apostrophe inside
		default:
			return j
		}
	}
	unclosed[kind] = true
	return -1
}

const uuidLen = 36

// isUUID reports whether s starts with 8-4-4-4-12 hex digits. Without it a
// group that happens to have no digit would stay.
func isUUID(s string) bool {
	if len(s) < uuidLen || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	for i := range uuidLen {
		if s[i] != '-' && charKind[s[i]]&hexDigit == 0 {
			return false
		}
	}
	return len(s) == uuidLen || charKind[s[uuidLen]]&word == 0
}

type charClass uint8

const (
	letter charClass = 1 << iota
	digit
	hexDigit
	space
	quote
	divider // may stand between numbers that belong together

	word = letter | digit
)

// charKind classes bytes; those of other scripts than ASCII count as letters.
var charKind = func() (t [256]charClass) {
	for c := range t {
		switch b := byte(c); {
		case '0' <= b && b <= '9':
			t[c] = digit | hexDigit
		case 'a' <= b && b <= 'f', 'A' <= b && b <= 'F':
			t[c] = letter | hexDigit
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', b >= 0x80:
			t[c] = letter
		case b == ' ', '\t' <= b && b <= '\r':
			t[c] = space
		case b == '\'', b == '"', b == '`':
			t[c] = quote
		}
	}
	for _, b := range []byte(" ,.:;/+-_") {
		t[b] |= divider
	}
	return t
}()
