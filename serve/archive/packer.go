package archive

import (
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"time"
)

// packer compresses what is written to it, and sums up the bytes that come out.
type packer struct {
	to    io.Writer
	gzip  *gzip.Writer // nil without compression
	sum   hash.Hash
	bytes int64
}

func newPacker(to io.Writer, compress bool) *packer {
	p := &packer{to: to, sum: sha256.New()}
	if compress {
		p.gzip = gzip.NewWriter(packed{p})
	}
	return p
}

func (p *packer) Write(b []byte) (int, error) {
	if p.gzip != nil {
		return p.gzip.Write(b)
	}
	return packed{p}.Write(b)
}

// close ends the compression, and returns size and hash of what came out.
func (p *packer) close() (bytes int64, sum string, err error) {
	if p.gzip != nil {
		err = p.gzip.Close()
	}
	return p.bytes, hex.EncodeToString(p.sum.Sum(nil)), err
}

// packed takes the compressed bytes of a packer.
type packed struct{ *packer }

func (p packed) Write(b []byte) (int, error) {
	n, err := p.to.Write(b)
	p.sum.Write(b[:n]) // it never fails
	p.bytes += int64(n)
	return n, err
}

// sumOf reads to the end, and returns size and hash.
func sumOf(r io.Reader) (bytes int64, sum string, err error) {
	h := sha256.New()
	bytes, err = io.Copy(h, r)
	return bytes, hex.EncodeToString(h.Sum(nil)), err
}

// NewID returns an id for an archive. IDs sort by time.
func NewID(at time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return at.UTC().Format("20060102T150405.000Z") + "-" + hex.EncodeToString(random[:])
}
