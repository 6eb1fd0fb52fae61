package yamlfile

import (
	"errors"
	"io/fs"
)

// NamedBy gives the error of a file that is missing the key that names it. Errors of what the file
// has stay as they are: they name the file and the line.
func NamedBy(key string, err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return &KeyError{Key: key, Problem: err.Error()}
	}
	return err
}
