package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// patch is a JSON merge patch, RFC 7396. It is an object, and so is what it is laid over: for anything else the RFC has
// the whole value replaced, which over a thousand records is an accident.
type patch []byte

func newPatch(text []byte) (patch, error) {
	if err := isObject(text); err != nil {
		return nil, fmt.Errorf("the patch %w", err)
	}
	return patch(text), nil
}

// apply keeps what the patch does not name: its order, its numbers digit by digit. How text is escaped may change.
func (p patch) apply(value []byte) ([]byte, error) {
	if value == nil {
		return nil, errors.New("patch: the value is null (a tombstone)")
	}
	if err := isObject(value); err != nil {
		return nil, fmt.Errorf("patch: the value %w", err)
	}
	patched, err := jsonpatch.MergePatch(value, p)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	return patched, nil
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
