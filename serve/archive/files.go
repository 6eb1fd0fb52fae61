package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// files are the store of the file system. Only their owner can read them.
type files struct{}

// write writes a file beside its name, and gives it that name when all of it is on the disk.
func (files) write(_ context.Context, name string, once bool, from func(io.Writer) error) error {
	dir := filepath.Dir(name)
	if once {
		if err := makeDir(dir); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(name); err == nil {
		return ErrExists
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*"+partSuffix)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(f, from), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := publish(f.Name(), name); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := syncDir(dir); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// partSuffix ends the name of a file that is not complete.
const partSuffix = ".part"

// makeDir makes a directory and those above it, durably: without its name a file is lost.
func makeDir(name string) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is a file, and not a directory", name)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeDir(filepath.Dir(name)); err != nil {
		return err
	}
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func fill(f *os.File, from func(io.Writer) error) error {
	if err := from(f); err != nil {
		return err
	}
	return f.Sync()
}

// publish gives a complete file its name. A link fails where the name is taken, and a rename would
// replace what is there; but not all file systems have links.
func publish(from, name string) error {
	err := os.Link(from, name)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, fs.ErrExist):
		return ErrExists
	}
	if _, err := os.Lstat(name); err == nil {
		return ErrExists
	}
	return os.Rename(from, name)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (files) open(_ context.Context, name string) (io.ReadCloser, error) {
	info, err := os.Stat(name) // before opening it, which would wait on a pipe
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: import reads it twice, first to check it, so save it to one", name)
	}
	return os.Open(name)
}

func (files) remove(_ context.Context, name string) error { return os.Remove(name) }

// sweep removes the files that never got their names.
func (files) sweep(_ context.Context, folder string, before time.Time) error {
	all, err := os.ReadDir(folder)
	for _, e := range all {
		name, part := strings.CutSuffix(e.Name(), partSuffix)
		name, dot := strings.CutPrefix(name, ".")
		info, gone := e.Info()
		if !part || !dot || gone != nil || !info.Mode().IsRegular() || !info.ModTime().Before(before) || !isArchive(strings.TrimSuffix(name, filepath.Ext(name))) {
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(folder, e.Name())))
	}
	return err
}

func (files) isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func (files) list(_ context.Context, folder string) (names []string, err error) {
	err = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && isArchive(d.Name()) {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

func (files) join(folder, name string) string { return filepath.Join(folder, filepath.FromSlash(name)) }

func (files) location(name string) string { return name }
