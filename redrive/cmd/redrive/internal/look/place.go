package look

// The place of a letter as text.

import (
	"fmt"
	"strconv"
	"strings"
)

func parsePlace(s string) (partition int32, offset int64, err error) {
	number, rest, ok := strings.Cut(s, ":")
	p, err1 := strconv.ParseUint(number, 10, 31)
	o, err2 := strconv.ParseUint(rest, 10, 63)
	if !ok || err1 != nil || err2 != nil {
		return 0, 0, fmt.Errorf("%q is not partition:offset, such as 3:41", s)
	}
	return int32(p), int64(o), nil
}

// placeText is a letter's place as list prints it and parsePlace reads it.
func placeText(partition int32, offset int64) string { return fmt.Sprintf("%d:%d", partition, offset) }
