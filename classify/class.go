package classify

// Classes that others compare with. The names of the other built-in classes
// are in the package documentation.
const (
	// ClassUnclassified is the class of an error in which nothing has a name,
	// such as a bare errors.New. Many faults share it, so whatever compares
	// classes has to compare class and fingerprint where it is this one.
	ClassUnclassified = "unclassified"
	// ClassTimeout is that of context.DeadlineExceeded.
	ClassTimeout = "timeout"
	// ClassCanceled is that of context.Canceled.
	ClassCanceled = "canceled"
	// ClassDecode is that of input that can't be parsed.
	ClassDecode = "decode"
	// ClassUnsupportedVersion is that of UnsupportedVersion.
	ClassUnsupportedVersion = "unsupported-version"
)

// Kind is a kind of failure that is told from others whatever its class is.
type Kind string

// The kinds; an empty one is any other failure.
const (
	// KindPanic is a panic, of a handler or of a decoder.
	KindPanic Kind = "panic"
	// KindUnsupportedVersion is what UnsupportedVersion marks.
	KindUnsupportedVersion Kind = "unsupported-version"
	// KindDecode is a payload that can't be parsed: what Undecodable marks, and what has ClassDecode.
	KindDecode Kind = "decode"
)

// MaxClass is the longest class in bytes.
const MaxClass = 128

// CleanClass returns class with each character outside [A-Za-z0-9_.*/-]
// replaced by '_', cut to [MaxClass]. It returns class itself, without
// allocating, where there is nothing to do.
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
