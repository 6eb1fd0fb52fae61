package commitmark

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Lane is what a commit says about its partition: why its records do not run, and which release
// runs them. Of the zero value, nothing is wrong, and the release is unknown.
type Lane struct {
	State     LaneState
	Since     time.Time // by the clock of the process, in seconds; zero if unknown
	OpenSince time.Time // since when an open transaction is ahead of it; zero for none
	Release   string    // the version of the service; at most mostRelease bytes of it
}

// LaneState says why no record of a partition runs; 0 is that records may run.
type LaneState byte

// The states of a lane.
const (
	Stopped    LaneState = 's' // it halted on a record whose disposition is Stop
	Missing    LaneState = 'm' // a topic is missing to which it has to write
	Denied     LaneState = 'd' // it may not write to a topic, as it has to
	Refused    LaneState = 'w' // what it has to write is refused, or not acknowledged
	Unreadable LaneState = 'r' // the partition, or the same one of a retry topic, cannot be read
	Stuck      LaneState = 't' // a handler runs past its timeout
	Paused     LaneState = 'p' // the service paused the topic
)

const laneStates = "smdwrtp"

// mostRelease bounds the bytes of a release.
const mostRelease = 24

// MostLane bounds the characters of a lane's fields.
const MostLane = len(" l=") + 1 + 13 + len(" t=") + 13 + len(" v=") + mostRelease*4/3

// OfRelease is a lane of which a commit says nothing but its release.
func OfRelease(release string) Lane { return Lane{Release: release}.Short() }

// Over is what a commit says of a lane that its process gives up.
func (l Lane) Over() Lane { return Lane{Release: l.Release} }

// Short returns the lane as a commit says it, and ParseLane reads it.
func (l Lane) Short() Lane { return ParseLane(Mark+l.Field(), 0) }

// Field is the lane as fields of a commit's metadata, each with the space before it. They are
// " l=" with the state and the seconds since 1970 in base 36, " t=" with the seconds of OpenSince,
// and " v=" with the release in base64. What is not set has no field.
func (l Lane) Field() string {
	var b []byte
	seconds := func(at time.Time) []byte {
		if at.IsZero() {
			at = time.Unix(0, 0)
		}
		return strconv.AppendInt(b, max(0, at.Unix()), 36)
	}
	if l.State != 0 {
		b = append(b, " l="...)
		b = append(b, byte(l.State))
		b = seconds(l.Since)
	}
	if !l.OpenSince.IsZero() {
		b = append(b, " t="...)
		b = seconds(l.OpenSince)
	}
	if release := l.Release[:min(len(l.Release), mostRelease)]; release != "" {
		b = append(b, " v="...)
		b = base64.RawStdEncoding.AppendEncode(b, []byte(release))
	}
	return string(b)
}

// ParseLane reads what the metadata of an offset says about its partition. What it does not know,
// or is broken, says nothing; so does the text of another offset, which a tool kept when it moved
// that.
func ParseLane(metadata string, offset int64) (l Lane) {
	for name, value := range fields(metadata, offset) {
		switch {
		case name == "l" && value != "" && l.State == 0 && strings.Contains(laneStates, value[:1]):
			if since, ok := parseSeconds(value[1:]); ok {
				l.State, l.Since = LaneState(value[0]), since
			}
		case name == "t" && l.OpenSince.IsZero():
			l.OpenSince, _ = parseSeconds(value)
		case name == "v" && l.Release == "":
			if text, err := base64.RawStdEncoding.DecodeString(value); err == nil && len(text) <= mostRelease {
				l.Release = strings.ToValidUTF8(string(text), "")
			}
		}
	}
	return l
}

// parseSeconds reads a time; 0 is none. So there is no year 10000, of which JSON has no time.
func parseSeconds(text string) (at time.Time, ok bool) {
	n, err := strconv.ParseUint(text, 36, 37)
	if err != nil || n == 0 {
		return time.Time{}, err == nil
	}
	return time.Unix(int64(n), 0), true
}
