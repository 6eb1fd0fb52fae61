package archive

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// ErrExists reports that there is an archive of that name already.
var ErrExists = errors.New("already exists and is never overwritten: choose another name")

// store keeps files under names.
type store interface {
	// write calls from once, and keeps under the name what that writes. It keeps nothing if it
	// fails, if from fails, or if the name is taken. once means that no other process can have
	// chosen the name.
	write(ctx context.Context, name string, once bool, from func(io.Writer) error) error
	open(ctx context.Context, name string) (io.ReadCloser, error)
	remove(ctx context.Context, name string) error
	// sweep removes what processes that were killed before a time left of archives in a folder.
	sweep(ctx context.Context, folder string, before time.Time) error
	// isFolder reports whether there is a folder of that name.
	isFolder(name string) bool
	// list returns the names of the archives in a folder, sorted, folders within included.
	list(ctx context.Context, folder string) ([]string, error)
	join(folder, name string) string
	location(name string) string // for people, and for Parse
}

// s3Scheme begins the locations of objects.
const s3Scheme = "s3://"

// removeLimit is how long it may take to remove an archive.
const removeLimit = 30 * time.Second

// isArchive reports whether a name in a folder is that of an archive, and not of one that was never
// completed.
func isArchive(name string) bool {
	return !strings.HasPrefix(name, ".") && (strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".jsonl.gz"))
}
