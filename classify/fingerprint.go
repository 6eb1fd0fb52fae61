package classify

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"sync/atomic"
)

const (
	maxScanned    = 4096 // bytes of a message that are read
	maxNormalised = 512  // bytes of a normalised message that count
	maxFrame      = 256
)

// fingerprint returns the first 8 bytes of SHA-256 in hex over class, message
// and frame, each ended by NUL.
func fingerprint(class, message, frame string) string {
	var n normaliser
	n.verbatim(class)
	n.message(message)
	n.verbatim(frame[:min(len(frame), maxFrame)])
	return printOf(n.buf[:n.n])
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
