package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Target is where archives are written: one file or object, or a folder, in which each archive has
// a name of its own.
type Target struct {
	store  store
	name   string // of the file or object, or of the folder, as the store knows it
	folder bool
}

// Parse reads a target: the path of a file, or s3://bucket/key. One that ends in a slash, or is a
// directory, is a folder. It does no other I/O.
func Parse(text string, s S3) (*Target, error) {
	st, name, err := find(text, s)
	if err != nil {
		return nil, err
	}
	return &Target{store: st, name: name, folder: strings.HasSuffix(text, "/") || st.isFolder(name)}, nil
}

// ParseFolder reads a target that is a folder, whether its name ends in a slash or not.
func ParseFolder(text string, s S3) (*Target, error) {
	t, err := Parse(text, s)
	if err == nil {
		t.folder = true
	}
	return t, err
}

// find returns the store of a location, and the name in it.
func find(text string, s S3) (store, string, error) {
	if text == "" {
		return nil, "", errors.New("archive: the location is empty: a path, or s3://bucket/folder/")
	}
	rest, ok := strings.CutPrefix(text, s3Scheme)
	if !ok {
		if before, _, is := strings.Cut(text, "://"); is {
			return nil, "", fmt.Errorf("archive: %q: there is no storage %s://: a path, or s3://bucket/folder/", text, before)
		}
		return files{}, filepath.Clean(text), nil
	}
	name, key, _ := strings.Cut(rest, "/")
	if u, err := url.Parse(text); name == "" || strings.ContainsAny(name, "?#@:") || err != nil || u.Host != name {
		return nil, "", fmt.Errorf("archive: %q is not s3://bucket/folder/", text)
	}
	st, err := newBucket(name, s)
	return st, strings.TrimSuffix(key, "/"), err
}

// String returns the target's location.
func (t *Target) String() string {
	at := t.store.location(t.name)
	if t.folder && !strings.HasSuffix(at, "/") {
		at += "/"
	}
	return at
}

// Archive is an archive that was written.
type Archive struct {
	// Location is the path, or s3://bucket/key: [Open] opens it.
	Location string
	// Letters is how many letters it has, and Bytes its size.
	Letters, Bytes int64
	// SHA256 is the hash of its bytes, in hex.
	SHA256 string

	name string // as the store knows it
}

// Write writes an archive of a topic's letters. letters writes them, as [dlq.Export] does, and
// returns their number. In a folder the archive's name is topic/time-id.jsonl.gz: names sort by
// time. id has to be unique; it is [NewID]'s if it is empty.
//
// Write returns when the archive is complete, durable, and was read back with the same SHA-256.
// After an error there is no archive; what is left of one that could not be removed is named.
func (t *Target) Write(ctx context.Context, topic, id string, letters func(io.Writer) (int64, error)) (*Archive, error) {
	name, once := t.name, false
	if t.folder {
		if id == "" {
			id = NewID(time.Now())
		}
		name, once = t.store.join(t.name, path.Join(topic, id+".jsonl.gz")), true
	}
	a := &Archive{Location: t.store.location(name), name: name}
	fail := func(what string, err error) (*Archive, error) {
		return nil, fmt.Errorf("archive: %s %s: %w", what, a.Location, err)
	}
	err := t.store.write(ctx, name, once, func(w io.Writer) (err error) {
		p := newPacker(w, strings.HasSuffix(name, ".gz"))
		if a.Letters, err = letters(p); err != nil {
			return err
		}
		a.Bytes, a.SHA256, err = p.close()
		return err
	})
	if errors.Is(err, ErrExists) {
		return nil, fmt.Errorf("archive: %s %w", a.Location, err)
	}
	if err != nil {
		return fail("write", err)
	}
	if err := t.verify(ctx, name, a); err != nil {
		return fail("verify", errors.Join(err, t.Remove(ctx, a)))
	}
	if t.folder {
		t.sweep(ctx, name)
	}
	return a, nil
}

// Remove removes an archive that Write wrote, even after ctx has ended: its letters are still in
// their topic.
func (t *Target) Remove(ctx context.Context, a *Archive) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	if err := t.store.remove(ctx, a.name); err != nil {
		return fmt.Errorf("%s could not be removed: %w", a.Location, err)
	}
	return nil
}

// abandonedAfter is for how long no process writes at an archive that is not complete: its process
// was killed. A retention takes an hour at most.
const abandonedAfter = 24 * time.Hour

// sweep removes what processes that were killed left beside an archive. Where that is not permitted
// it stays, and does no harm.
func (t *Target) sweep(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	_ = t.store.sweep(ctx, path.Dir(filepath.ToSlash(name)), time.Now().Add(-abandonedAfter))
}

// verify reads an archive, and compares its bytes with those that were written.
func (t *Target) verify(ctx context.Context, name string, a *Archive) error {
	r, err := t.store.open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	bytes, sum, err := sumOf(r)
	if err != nil {
		return err
	}
	if bytes != a.Bytes || sum != a.SHA256 {
		return fmt.Errorf("what was read back has %d bytes with the SHA-256 %s, and what was written %d with %s", bytes, sum, a.Bytes, a.SHA256)
	}
	return nil
}
