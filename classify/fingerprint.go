package classify

import (
	"crypto/sha256"
	"encoding/hex"
)

const (
	maxScanned    = 4096 // bytes of a message that are looked at
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
	sum := sha256.Sum256(n.buf[:n.n])
	var out [16]byte
	hex.Encode(out[:], sum[:8])
	return string(out[:])
}
