package classify

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// fingerprint returns the first 8 bytes of SHA-256 in hex over class, masked message and frame,
// each ended by NUL. A class has no NUL, so two classes have no input in common.
func fingerprint(class, message, frame string) string {
	if frame != "" || len(message) > maxMasked {
		return newFingerprint(class, message, frame)
	}
	sum := maphash.String(printsSeed, message)
	slot := &repeats[sum%uint64(len(repeats))]
	if p := slot.last.Load(); p != nil && p.message == message && p.class == class {
		return p.hex
	}
	is := newFingerprint(class, message, frame)
	if slot.seen.Swap(sum) == sum {
		slot.last.Store(&repeat{strings.Clone(class), strings.Clone(message), is})
	}
	return is
}

// repeats caches the fingerprints of messages that came twice in a row, by their hash: not even the
// masking is then left to do. Messages with an id would only fill it.
var repeats [64]struct {
	seen atomic.Uint64
	last atomic.Pointer[repeat]
}

type repeat struct{ class, message, hex string }

func newFingerprint(class, message, frame string) string {
	var m masker
	m.failure(class, message, frame)
	return printOf(m.buf[:m.n])
}

// digest is a fingerprint and its input.
type digest struct{ text, hex string }

// prints caches recent fingerprints by a hash of their input: records that fail in bulk fail alike.
var (
	prints     [64]atomic.Pointer[digest]
	printsSeed = maphash.MakeSeed()
)

func printOf(text []byte) string {
	slot := &prints[maphash.Bytes(printsSeed, text)%uint64(len(prints))]
	if p := slot.Load(); p != nil && p.text == string(text) {
		return p.hex
	}
	sum := sha256.Sum256(text)
	p := &digest{text: string(text), hex: hex.EncodeToString(sum[:8])}
	slot.Store(p)
	return p.hex
}
