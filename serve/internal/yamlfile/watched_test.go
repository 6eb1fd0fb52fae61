package yamlfile

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// watch writes a file, and returns the content that is watched and a function that writes the file
// with a time.
func watch(t *testing.T, text string, log *slog.Logger) (w *Watched[string], write func(text string, at time.Time)) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "words.yaml")
	write = func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(text, time.Now())
	w, err := Watch(name, func(_ string, text []byte) (string, error) {
		if len(text) == 0 {
			return "", errors.New("it is empty")
		}
		return string(text), nil
	}, log)
	if err != nil {
		t.Fatal(err)
	}
	return w, write
}

// Another text in its place counts, although it has the same time and size.
func TestWatched_SeesAnotherTextOfTheSameTimeAndSize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, write := watch(t, "one", slog.New(slog.DiscardHandler))
		at := time.Now()
		time.Sleep(time.Hour)
		write("two", at)
		if got := w.Get(); got != "two" {
			t.Errorf("%q counts", got)
		}
	})
}

// A text that was written just now counts when two looks agree. A broken one never does, nor does a
// file that is gone, and the log says so once, and that the file is right again.
func TestWatched_TakesATextThatHasStayedTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		w, write := watch(t, "one", slog.New(slog.NewTextHandler(&log, nil)))
		after := func(wait time.Duration, want string) {
			t.Helper()
			time.Sleep(wait)
			if got := w.Get(); got != want {
				t.Errorf("%q counts, want %q", got, want)
			}
		}
		after(time.Second, "one")
		write("tw", time.Now().Add(time.Second))
		after(time.Second, "one")
		write("two", time.Now().Add(time.Second))
		after(time.Second, "one")
		after(time.Second/2, "one") // too early for a look
		after(time.Second/2, "two")
		write("three", time.Now().Add(24*time.Hour)) // by another clock
		after(time.Second, "two")
		after(time.Second, "three")
		write("", time.Now())
		after(time.Second, "three")
		after(time.Hour, "three")
		if got := log.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "a file cannot be read; what it had before counts") || !strings.Contains(got, "it is empty") {
			t.Errorf("the log has %s", got)
		}
		log.Reset()
		write("three", time.Now())
		after(time.Second, "three")
		after(time.Second, "three")
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "a file can be read again") {
			t.Errorf("the log has %s", got)
		}
		log.Reset()
		if err := os.Remove(w.name); err != nil {
			t.Fatal(err)
		}
		after(time.Hour, "three")
		after(time.Hour, "three")
		if got := log.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "no such file") {
			t.Errorf("the log has %s", got)
		}
	})
}
