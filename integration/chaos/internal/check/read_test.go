package check

import (
	"os"
	"path/filepath"
	"testing"
)

// A data race of a process that is killed later would go unnoticed: its exit status is the kill's.
func TestAlarmIn_FindsDataRaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"time=1 level=INFO msg=\"panic: as the script says\"\n":    "",
		"time=1 level=INFO\nWARNING: DATA RACE\nWrite at 0x1 by\n": "WARNING: DATA RACE",
		"panic: index out of range":                                "panic: index out of range",
	} {
		name := filepath.Join(t.TempDir(), "a.log")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := alarmIn(name); got != want || err != nil {
			t.Errorf("of %q it finds %q, %v; want %q", text, got, err, want)
		}
	}
}
