package measured

import (
	"bytes"
	"fmt"
	"os"
)

// Write puts a text between two lines of a page, in place of what stands there.
func Write(page, begin, end, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	head, rest, found := bytes.Cut(old, []byte(begin))
	_, tail, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return fmt.Errorf("%s has no place for the figures: add the lines %q and %q", page, begin, end)
	}
	return os.WriteFile(page, bytes.Join([][]byte{head, []byte(begin), []byte(text), []byte(end), tail}, nil), 0o644)
}
