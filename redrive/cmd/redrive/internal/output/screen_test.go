package output

import (
	"errors"
	"testing"
)

func TestScreen_EscapesWords(t *testing.T) {
	t.Parallel()
	s, _, words := fixed(Table)
	s.Print("topic %s: %v, %d", "a\x1b[2J\nredrive: done", errors.New("b\u009b"), 3)
	s.Warn("%s", []string{"c\r", "d"})
	s.Warn("%v", errors.Join(errors.New("a"), errors.New("b\x1b"))) // it stays on its line
	want := `topic a\x1b[2J\nredrive: done: b\u009b, 3` + "\n" + `warning: c\r, d` + "\n" + `warning: a; b\x1b` + "\n"
	if got := words.String(); got != want {
		t.Errorf("words = %q, want %q", got, want)
	}
}

// What is written takes the place of the status line, whole.
func TestStatus_MakesRoom(t *testing.T) {
	t.Parallel()
	s, _, words := fixed(Table)
	s.wordsTTY, s.data = true, words // one terminal
	s.Status("1 of 2")
	s.Print("half of it")
	if _, err := s.Data().Write([]byte("data\n")); err != nil {
		t.Fatal(err)
	}
	s.Status("2 of 2")
	s.Status("")
	const erase = "\r\x1b[K"
	want := "1 of 2" + erase + "half of it\ndata\n2 of 2" + erase
	if got := words.String(); got != want {
		t.Errorf("terminal = %q, want %q", got, want)
	}
}
