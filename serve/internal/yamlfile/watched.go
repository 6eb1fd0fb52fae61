package yamlfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Watched is the content of a file that is read again when it changes. It is safe for concurrent
// use.
type Watched[T any] struct {
	name  string
	parse func(name string, text []byte) (T, error)
	log   *slog.Logger

	mu      sync.Mutex
	content T
	is      version   // of the content
	looked  time.Time // at the file
	seen    version   // of that look
	wrong   string    // what was wrong with it
}

// version is the hash of a file's text. Its time and size may be those of another text.
type version [sha256.Size]byte

const (
	// looksEvery is how often a file is looked at, at most.
	looksEvery = time.Second
	// mostBytes bounds a file. It is read whole each time.
	mostBytes = 16 << 20
)

// Watch reads a file.
func Watch[T any](name string, parse func(name string, text []byte) (T, error), log *slog.Logger) (*Watched[T], error) {
	w := &Watched[T]{name: name, parse: parse, log: log}
	text, _, err := w.read()
	if err == nil {
		err = w.take(text)
	}
	return w, err
}

// Get returns the content. While the file is gone or broken, the content before counts, and the log
// says where it is wrong, once.
func (w *Watched[T]) Get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.looked) >= looksEvery {
		w.looked = now
		w.look()
	}
	return w.content
}

// read returns the text of the file, and when it changed. A pipe in its place would hold up those
// who want the content.
func (w *Watched[T]) read() (text []byte, changed time.Time, err error) {
	info, err := os.Stat(w.name)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = &os.PathError{Op: "read", Path: w.name, Err: errors.New("not a regular file")}
	case info.Size() > mostBytes:
		err = &os.PathError{Op: "read", Path: w.name, Err: fmt.Errorf("it has %d bytes, and %d are the most", info.Size(), mostBytes)}
	default:
		if text, err = os.ReadFile(w.name); err == nil {
			info, err = os.Stat(w.name) // it may have changed since
		}
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return text, info.ModTime(), nil
}

// take makes the content of a text the one that counts.
func (w *Watched[T]) take(text []byte) error {
	content, err := w.parse(w.name, text)
	if err == nil {
		w.content, w.is = content, sha256.Sum256(text)
	}
	return err
}

// look reads the file if it changed, and says in the log what became of it. A file that was written
// within a second is not taken unless two looks agree: half of it may be right by itself, and would
// take the rest of the content away. One that was written before is: what was withdrawn does not
// count once more.
func (w *Watched[T]) look() {
	text, changed, err := w.read()
	if err != nil {
		w.logChange(err)
		return
	}
	before := w.seen
	w.seen = sha256.Sum256(text)
	switch {
	case w.seen == w.is:
		w.logChange(nil)
	case w.seen == before || time.Since(changed) >= looksEvery:
		w.logChange(w.take(text))
	}
}

// logChange writes to the log what is wrong with the file, once, and that it is right again.
func (w *Watched[T]) logChange(err error) {
	switch {
	case err == nil && w.wrong != "":
		w.log.Info("siding: a file can be read again", "file", w.name)
		w.wrong = ""
	case err != nil && err.Error() != w.wrong:
		w.log.Error("siding: a file cannot be read; what it had before counts", "file", w.name, "error", err)
		w.wrong = err.Error()
	}
}
