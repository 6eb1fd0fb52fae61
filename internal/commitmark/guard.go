package commitmark

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Guard is what a commit says about the guard of its topic: that the process which committed holds
// the partition's records back, or runs them in a strain. The zero value says that it does neither.
type Guard struct {
	State State
	Since time.Time // by the clock of the process, in seconds
	Class string    // of the last failure; at most mostClass bytes of it
}

// State is the state of a guard.
type State byte

// The states of a guard; 0 is closed.
const (
	Strained State = 's' // records run, and failures cost no attempt
	Held     State = 'h' // no record runs, but for probes
)

// mostClass bounds the bytes of a class, so that a commit keeps its room for records.
const mostClass = 24

// MostField bounds the characters of a field.
const MostField = len(" h=") + 1 + 13 + 1 + mostClass*4/3

// Field is the guard as a field of a commit's metadata, with the space before it; empty for a
// closed guard. It is " h=", the state, the seconds since 1970 in base 36, "." and the class in
// base64.
func (g Guard) Field() string {
	if g.State == 0 {
		return ""
	}
	class := g.Class[:min(len(g.Class), mostClass)]
	return " h=" + string(g.State) + strconv.FormatInt(max(0, g.Since.Unix()), 36) + "." + base64.RawStdEncoding.EncodeToString([]byte(class))
}

// ParseGuard reads what the metadata of an offset says about a guard. What it does not know, or is
// broken, says nothing; so does the text of another offset, which a tool kept when it moved that.
func ParseGuard(metadata string, offset int64) (g Guard) {
	for name, value := range fields(metadata, offset) {
		if name != "h" || value == "" || g.State != 0 {
			continue
		}
		seconds, text, _ := strings.Cut(value[1:], ".")
		// So there is no year 10000, of which JSON has no time.
		since, err := strconv.ParseUint(seconds, 36, 37)
		class, err2 := base64.RawStdEncoding.DecodeString(text)
		if state := State(value[0]); err == nil && err2 == nil && len(class) <= mostClass && (state == Strained || state == Held) {
			g = Guard{state, time.Unix(int64(since), 0), strings.ToValidUTF8(string(class), "")}
		}
	}
	return g
}
