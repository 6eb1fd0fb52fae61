package measured

import (
	"os"
	"path/filepath"
	"testing"
)

// Figures replace those of the last run, and a page without a place for them stays as it is.
func TestWrite_ReplacesWhatStandsBetween(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	for before, want := range map[string]string{
		"before\n<b>\nold\n<e>\nafter\n": "before\n<b>new<e>\nafter\n",
		"before\n<b>new<e>\nafter\n":     "before\n<b>new<e>\nafter\n",
		"":                               "", "<b>": "<b>", "<e><b>": "<e><b>",
	} {
		if err := os.WriteFile(page, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Write(page, "<b>", "<e>", "new")
		got, _ := os.ReadFile(page)
		if string(got) != want || (err == nil) != (len(want) > 6) {
			t.Errorf("%q became %q, want %q; %v", before, got, want, err)
		}
	}
	if err := Write(page+".none", "<b>", "<e>", "new"); err == nil {
		t.Error("a page that is not there was written")
	}
}
