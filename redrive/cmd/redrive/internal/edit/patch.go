package edit

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sidingkafka/siding/internal/mergepatch"
)

// MergePatch applies a JSON merge patch, RFC 7396, to a value. Both must be objects: for anything
// else the RFC replaces the whole value, which is an accident with a thousand records. What the
// patch does not name stays as it is: its order, its numbers digit by digit, its escapes. A member
// that occurs twice is an error, and so is a patch of more than 100 levels.
func MergePatch(value, patch []byte) ([]byte, error) {
	merged, err := mergepatch.Apply(value, patch)
	if err == nil && !isObject(value) {
		return nil, fmt.Errorf("the value %w", errNoObject)
	}
	return merged, err
}

// checkPatch says what is wrong with a patch.
func checkPatch(patch []byte) error {
	if err := mergepatch.Check(patch); err != nil {
		return err
	}
	if !isObject(patch) {
		return errNoObject
	}
	return nil
}

var errNoObject = errors.New("is no JSON object, so a merge patch would replace it as a whole")

// isObject reports whether text, which is JSON, is an object.
func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
}
