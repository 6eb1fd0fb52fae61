package dlq

import "testing"

// A letter that is there never counts as lost.
func TestLetterEpochs_CondemnNoLetterThatIsThere(t *testing.T) {
	t.Parallel()
	var e letterEpochs
	e.add(5, 0) // of an earlier version
	if e.end(1, 3) || e.isLost(5) || e.isLost(6) {
		t.Error("a letter is lost without epochs")
	}
	e.add(7, 2)
	e.add(12, 3)
	e.add(15, 9) // of metadata that were newer than now's
	if open := e.open(3); len(open) != 1 || open[0] != 2 {
		t.Errorf("the ends of %v are asked, want that of 2 epochs", open)
	}
	if e.end(2, 10) || e.isLost(7) || e.isLost(12) || e.isLost(15) {
		t.Error("a letter is lost that is before the end of its epochs, or of later ones")
	}
	if !e.end(3, 6) || !e.isLost(7) || !e.isLost(12) || e.isLost(15) {
		t.Error("a log that ends before letters of 2 and 3 epochs did not lose them")
	}
	if e.add(7, 4); e.isLost(7) {
		t.Error("a letter has what became of a lost one")
	}
}
