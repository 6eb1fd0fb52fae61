package classify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
)

func TestAFingerprintIsTheSameWhateverWasFingerprintedBefore(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 20_000 {
				text := fmt.Appendf(nil, "class%d\x00message\x00\x00", i%300)
				sum := sha256.Sum256(text)
				if got, want := printOf(text), hex.EncodeToString(sum[:8]); got != want {
					t.Errorf("%q: got %s, want %s", text, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestAFingerprintThatIsKnownTakesNoMemory(t *testing.T) {
	text := []byte("class\x00message\x00\x00")
	printOf(text)
	if n := testing.AllocsPerRun(100, func() { printOf(text) }); n > 0 {
		t.Errorf("it takes %v allocations", n)
	}
}
