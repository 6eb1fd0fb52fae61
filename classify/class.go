package classify

// Classes for comparisons in other packages. The package documentation lists the other built-in
// classes.
const (
	// ClassUnclassified is the class of an error without a named type, such as a bare errors.New.
	// Many faults share it, so code that compares classes must also compare fingerprints for this
	// one.
	ClassUnclassified = "unclassified"
	// ClassTimeout is the class of context.DeadlineExceeded.
	ClassTimeout = "timeout"
	// ClassCanceled is the class of context.Canceled.
	ClassCanceled = "canceled"
	// ClassDecode is the class of input that cannot be parsed.
	ClassDecode = "decode"
	// ClassUnsupportedVersion is the class of errors that UnsupportedVersion marks.
	ClassUnsupportedVersion = "unsupported-version"
)

// Kind distinguishes some failures from others, whatever their class is.
type Kind string

// The kinds; an empty one is any other failure.
const (
	// KindPanic is a panic, of a handler or of a decoder.
	KindPanic Kind = "panic"
	// KindUnsupportedVersion is a failure that UnsupportedVersion marks.
	KindUnsupportedVersion Kind = "unsupported-version"
	// KindDecode is a payload that cannot be parsed: an error that Undecodable marks, or one of
	// ClassDecode.
	KindDecode Kind = "decode"
)

// MaxClass is the length of the longest class, in bytes.
const MaxClass = 128

// CleanClass returns class with each character outside [A-Za-z0-9_.*/-] replaced by '_', cut to
// [MaxClass]. If nothing has to change it returns class itself, without allocating.
func CleanClass(class string) string {
	if ValidClass(class) || class == "" {
		return class
	}
	b := make([]byte, 0, min(len(class), MaxClass))
	for _, r := range class { // by rune, so that "ü" becomes one '_'
		if len(b) == MaxClass {
			break
		}
		if r < 0x80 && classChar[r] {
			b = append(b, byte(r))
		} else {
			b = append(b, '_')
		}
	}
	return string(b)
}

// ValidClass reports whether class has 1 to [MaxClass] characters, all of them
// from [A-Za-z0-9_.*/-].
func ValidClass(class string) bool {
	if class == "" || len(class) > MaxClass {
		return false
	}
	for i := range len(class) {
		if !classChar[class[i]] {
			return false
		}
	}
	return true
}

var classChar = func() (t [256]bool) {
	for c := range t {
		switch b := byte(c); {
		case 'A' <= b && b <= 'Z', 'a' <= b && b <= 'z', '0' <= b && b <= '9':
			t[c] = true
		case b == '_', b == '.', b == '*', b == '/', b == '-':
			t[c] = true
		}
	}
	return t
}()
