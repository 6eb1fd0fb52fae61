package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// MergePatch lays a JSON merge patch, RFC 7396, over a value. It is an object, and so is what it is laid over: for anything else the
// RFC has the whole value replaced, which over a thousand records is an accident. What the patch does not name is kept: its order, its
// numbers digit by digit. How text is escaped may change.
func MergePatch(value, patch []byte) ([]byte, error) {
	if err := isObject(value); err != nil {
		return nil, fmt.Errorf("the value %w", err)
	}
	return jsonpatch.MergePatch(value, patch)
}

func isObject(text []byte) error {
	var any json.RawMessage
	if err := json.Unmarshal(text, &any); err != nil {
		return fmt.Errorf("is no JSON: %w", err)
	}
	if trimmed := bytes.TrimLeft(any, " \t\r\n"); trimmed[0] != '{' {
		return errors.New("is no JSON object, so that a merge patch would replace it as a whole")
	}
	return nil
}
