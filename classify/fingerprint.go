package classify

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"strings"
	"sync/atomic"
)

const (
	maxScanned    = 4096 // bytes of a message that are read
	maxNormalised = 512  // bytes of a normalised message that count
	maxFrame      = 256
)

// fingerprint returns the first 8 bytes of SHA-256 in hex over class, message
// and frame, each ended by NUL.
func fingerprint(class, message, frame string) string {
	if frame != "" || len(message) > maxNormalised {
		return newFingerprint(class, message, frame)
	}
	sum := maphash.String(printsSeed, message)
	slot := &repeats[sum%uint64(len(repeats))]
	if p := slot.last.Load(); p != nil && p.message == message && p.class == class {
		return p.hex
	}
	is := newFingerprint(class, message, frame)
	if slot.seen.Swap(sum) == sum {
		slot.last.Store(&repeat{strings.Clone(class), strings.Clone(message), is})
	}
	return is
}

// repeats caches the fingerprints of messages that came twice in a row, by their hash: not even the
// normalising is then left to do. Messages with an id would only fill it.
var repeats [64]struct {
	seen atomic.Uint64
	last atomic.Pointer[repeat]
}

type repeat struct{ class, message, hex string }

func newFingerprint(class, message, frame string) string {
	var n normaliser
	n.verbatim(class)
	n.message(message)
	n.verbatim(frame[:min(len(frame), maxFrame)])
	return printOf(n.buf[:n.n])
}

// digest is a fingerprint and its input.
type digest struct{ text, hex string }

// prints caches recent fingerprints by a hash of their input: records that fail in bulk fail alike.
var (
	prints     [64]atomic.Pointer[digest]
	printsSeed = maphash.MakeSeed()
)

func printOf(text []byte) string {
	slot := &prints[maphash.Bytes(printsSeed, text)%uint64(len(prints))]
	if p := slot.Load(); p != nil && p.text == string(text) {
		return p.hex
	}
	sum := sha256.Sum256(text)
	p := &digest{text: string(text), hex: hex.EncodeToString(sum[:8])}
	slot.Store(p)
	return p.hex
}

// normaliser collects the input of a fingerprint. It is one array without a slice into it, so that
// it stays on the stack.
type normaliser struct {
	buf      [MaxClass + 1 + maxNormalised + 1 + maxFrame + 1]byte
	n        int     // bytes of buf that are used
	limit    int     // bytes that the message may fill
	hash     int     // index after the last "#", -1 if other text followed
	unclosed [3]bool // kinds of quotes without a closing one further on
}

// verbatim adds s and the NUL that ends it.
func (n *normaliser) verbatim(s string) {
	n.n += copy(n.buf[n.n:], s)
	n.buf[n.n] = 0
	n.n++
}

// message adds s, up to maxNormalised bytes of it, without what differs from
// one record to the next:
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
func (n *normaliser) message(s string) {
	s = s[:min(len(s), maxScanned)]
	start := n.n
	n.limit, n.hash = start+maxNormalised, -1
	for i := 0; i < len(s) && n.n < n.limit; {
		switch kind := charKind[s[i]]; {
		case kind&word != 0:
			if isUUID(s[i:]) {
				n.number()
				i += uuidLen
				continue
			}
			end, some, all := i, kind, kind
			for ; end < len(s) && charKind[s[end]]&word != 0; end++ {
				some |= charKind[s[end]]
				all &= charKind[s[end]]
			}
			n.word(s[i:end], some, all)
			i = end
		case kind&space != 0:
			if n.n > start && n.buf[n.n-1] != ' ' {
				n.put(' ')
			}
			i++
		case kind&quote != 0:
			n.put(s[i])
			if end := closing(s, i, &n.unclosed); end >= 0 {
				n.put(s[i])
				i = end
			}
			i++
		case s[i] == '-' && i+1 < len(s) && charKind[s[i+1]]&digit != 0 && (i == 0 || charKind[s[i-1]]&word == 0):
			i++ // a sign: the number follows
		default:
			n.put(s[i])
			i++
		}
	}
	if n.n > start && n.buf[n.n-1] == ' ' {
		n.n--
	}
	n.buf[n.n] = 0
	n.n++
}

// word adds a run of letters and digits. some has the kinds of any of its
// characters, all those that each of them has.
func (n *normaliser) word(w string, some, all charClass) {
	if some&digit == 0 {
		if all&hexDigit != 0 && len(w) >= 8 { // hex, not a word
			n.number()
			return
		}
		n.text(w)
		return
	}
	letters := 0 // before the first digit
	for charKind[w[letters]]&digit == 0 {
		letters++
	}
	if letters == 0 || all&hexDigit != 0 || !allDigits(w[letters:]) {
		n.number()
		return
	}
	n.text(w[:letters])
	n.number()
}

func allDigits(s string) bool {
	for i := range len(s) {
		if charKind[s[i]]&digit == 0 {
			return false
		}
	}
	return true
}

// number adds "#", or nothing where only dividers stand between it and the last
// one.
func (n *normaliser) number() {
	if n.hash >= 0 && n.n-n.hash <= 2 {
		n.n = n.hash
		return
	}
	n.put('#')
	n.hash = n.n
}

func (n *normaliser) text(s string) {
	n.hash = -1
	n.n += copy(n.buf[n.n:n.limit], s)
}

func (n *normaliser) put(c byte) {
	if n.n == n.limit {
		return
	}
	if charKind[c]&divider == 0 {
		n.hash = -1
	}
	n.buf[n.n] = c
	n.n++
}

// closing returns the index of the quote that closes the one at s[i], or -1 if s[i] is an
// apostrophe or is never closed.
func closing(s string, i int, unclosed *[3]bool) int {
	q := s[i]
	kind := strings.IndexByte("'\"`", q)
	if unclosed[kind] || q == '\'' && i > 0 && charKind[s[i-1]]&word != 0 {
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

// isUUID reports whether s starts with 8-4-4-4-12 hex digits. Without it, a group of letters alone
// would stay in the text.
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

// charKind classifies bytes; bytes of scripts other than ASCII count as letters.
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
