package connect

import (
	"fmt"
	"strings"
)

// A value is a setting's text, and where it comes from.
type value struct {
	text string
	from string // see [layer]
	rank int    // of its layer, 0 is the flags
}

func (v value) given() bool { return v.from != "" }

// truth reads yes or no; not given is no.
func (v value) truth() (bool, error) {
	switch strings.ToLower(v.text) {
	case "true", "yes", "1", "on":
		return true, nil
	case "", "false", "no", "0", "off":
		return false, nil
	}
	return false, fmt.Errorf("%s: %q is neither true nor false", v.from, v.text)
}
