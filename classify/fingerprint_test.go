package classify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestFingerprint_GroupsTheSameFault(t *testing.T) {
	t.Parallel()
	const class = "unclassified"
	same := [][]string{
		{"order 7: unknown SKU 'A-1'", "order 83127: unknown SKU 'zz top'"},
		{"timeout after 1.5s", "timeout after 150ms", "timeout after 2m0s"},
		{"batch [1 2 3] refused", "batch [4] refused"},
	}
	for _, group := range same {
		for _, m := range group[1:] {
			if fingerprint(class, m, "") != fingerprint(class, group[0], "") {
				t.Errorf("%q and %q differ", group[0], m)
			}
		}
	}
	seen := map[string]string{}
	for _, in := range [][3]string{
		{class, same[0][0], ""},
		{class, same[1][0], ""},
		{class, same[2][0], ""},
		{"timeout", same[0][0], ""},
		{class, same[0][0], "main.handle"},
		{class, "", ""},
		{"", class, ""},
	} {
		fp := fingerprint(in[0], in[1], in[2])
		if other, ok := seen[fp]; ok {
			t.Errorf("%q and %q have the same fingerprint", in, other)
		}
		seen[fp] = strings.Join(in[:], "|")
	}
}

// Redrive and operators compare fingerprints that are months old: fingerprints are stable within a
// major version. If this test fails, the code is wrong.
func TestFingerprint_IsStable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ class, message, frame, want string }{
		{"unclassified", "", "", "194b3769fedb16fe"},
		{"timeout", "context deadline exceeded", "", "e3d4f877c0cedd1b"},
		{"orders.SKUError", "order 7: unknown SKU 'A-1' (3f2504e0-4f89-11d3-9a0c-0305e82c3301)", "", "57a0426ed9ca0487"},
		{"panic.runtime.boundsError", "panic: runtime error: index out of range [5] with length 3", "main.handle", "e57f43728f38dbe5"},
	} {
		if got := fingerprint(tt.class, tt.message, tt.frame); got != tt.want {
			t.Errorf("fingerprint(%q, %q, %q) = %s, want %s", tt.class, tt.message, tt.frame, got, tt.want)
		}
	}
}

func FuzzFingerprint(f *testing.F) {
	f.Add("timeout", `order 7: "x" 'it's' 3f2504e0-4f89-11d3-9a0c-0305e82c3301`, "main.f")
	f.Add("", "'\"`\\", "")
	f.Fuzz(func(t *testing.T, class, message, frame string) {
		fp := fingerprint(CleanClass(class), message, frame)
		if len(fp) != 16 || strings.Trim(fp, "0123456789abcdef") != "" {
			t.Errorf("fingerprint %q, want 16 hex digits", fp)
		}
	})
}

func TestFingerprint_IsTheSameWhateverCameBefore(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 20_000 {
				class, message := fmt.Sprintf("class%d", i/4%3), fmt.Sprintf("message %s", string(rune('a'+i/2%300)))
				sum := sha256.Sum256([]byte(class + "\x00" + message + "\x00\x00"))
				if got, want := fingerprint(class, message, ""), hex.EncodeToString(sum[:8]); got != want {
					t.Errorf("%s, %s: got %s, want %s", class, message, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestFingerprint_KnownOneTakesNoMemory(t *testing.T) {
	for _, message := range []string{"message", strings.Repeat("m", maxMasked+1)} {
		fingerprint("class", message, "")
		fingerprint("class", message, "")
		if n := testing.AllocsPerRun(100, func() { fingerprint("class", message, "") }); n > 0 {
			t.Errorf("%s: it takes %v allocations", message, n)
		}
	}
}

// Neither a million messages nor long ones stay in memory: with an id, each would come once.
func TestFingerprint_KeepsLittle(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for range 3 {
		fingerprint("class", long, "")
		fingerprint("class", long[:maxMasked], "")
	}
	once := func() { fingerprint("class", strconv.Itoa(rand.Int()), "") }
	once()
	if n := testing.AllocsPerRun(1000, once); n > 1 {
		t.Errorf("a message that came once takes %v allocations, want that of its text", n)
	}
	for i := range repeats {
		if p := repeats[i].last.Load(); p != nil && (len(p.message) > maxMasked || unsafe.StringData(p.message) == unsafe.StringData(long)) {
			t.Errorf("a text of %d bytes is kept, or one that it is part of", len(p.message))
		}
	}
}

// Two classes never fold, whatever their messages are.
func TestFingerprint_OfTwoClassesDiffers(t *testing.T) {
	t.Parallel()
	class := rapid.Custom(func(t *rapid.T) string {
		return CleanClass(rapid.SampledFrom([]string{"a", "b", "a.b", "orders.SKUError", ""}).Draw(t, "class") + rapid.String().Draw(t, "more"))
	})
	text := rapid.OneOf(rapid.Just(""), rapid.Just("\x00"), rapid.String(), rapid.Map(class, func(c string) string { return c + "\x00" }))
	rapid.Check(t, func(t *rapid.T) {
		a, b := class.Draw(t, "a"), class.Draw(t, "b")
		if a == b {
			return
		}
		as, bs := inputOf(a, text.Draw(t, "message"), ""), inputOf(b, text.Draw(t, "other"), text.Draw(t, "frame"))
		if as == bs {
			t.Fatalf("classes %q and %q have one input %q", a, b, as)
		}
	})
}

func inputOf(class, message, frame string) string {
	var m masker
	m.failure(class, message, frame)
	return string(m.buf[:m.n])
}
