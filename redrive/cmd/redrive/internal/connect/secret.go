package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
)

// A Secret is a password or a token that no way of printing shows.
type Secret struct {
	value
	file string // read when it is asked for, since tokens change
}

const hidden = "(hidden)"

// Format is what package fmt calls first, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText is what encoders call.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue is what loggers call.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// reveal returns the secret. One line break at the end of a file does not belong to it.
func (s Secret) reveal() (string, error) {
	if s.file == "" {
		return s.text, nil
	}
	b, err := os.ReadFile(s.file)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok && s.rank == profileRank {
			// Not quoted: it may be the secret itself, put there by mistake.
			return "", fmt.Errorf("%s: read the file that it names: %w; it takes a file's name, not the secret", s.from, pe.Err)
		}
		return "", fmt.Errorf("%s: %w", s.from, err)
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	if len(b) == 0 {
		return "", fmt.Errorf("%s: %s is empty", s.from, s.file)
	}
	return string(b), nil
}
