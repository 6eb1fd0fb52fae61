package client

import (
	"bytes"
	"compress/gzip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Strongest lets a producer compress its batches as far as brokers can read them, whatever the
// user's options say: zstd, or gzip for brokers before Kafka 2.1. So a record that its source took
// fits into its siblings. kgo's own zstd looks back 64 KiB, where other clients look back
// megabytes.
func Strongest() kgo.Opt {
	return kgo.WithCompressor(newStrongest())
}

func newStrongest() *strongest {
	return &strongest{encoders: sync.Pool{New: func() any { return newEncoder(zstd.SpeedBetterCompression) }}}
}

func newEncoder(level zstd.EncoderLevel) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level), zstd.WithWindowSize(8<<20))
	if err != nil {
		panic(err) // its options are constants
	}
	return e
}

type strongest struct{ encoders sync.Pool }

// Compress compresses a batch, unless it becomes no smaller.
func (s *strongest) Compress(dst *bytes.Buffer, src []byte, flags ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	out, codec := []byte(nil), kgo.CodecZstd
	if slices.Contains(flags, kgo.CompressDisableZstd) {
		out, codec = zipped(dst, src), kgo.CodecGzip
	} else {
		e := s.encoders.Get().(*zstd.Encoder)
		defer s.encoders.Put(e)
		out = e.EncodeAll(src, dst.AvailableBuffer())
	}
	if len(out) >= len(src) {
		return src, kgo.CodecNone
	}
	return out, codec
}

func zipped(dst *bytes.Buffer, src []byte) []byte {
	w, _ := gzip.NewWriterLevel(dst, gzip.BestCompression) // the level is valid
	_, _ = w.Write(src)                                    // a buffer takes all
	_ = w.Close()
	return dst.Bytes()
}

// Tightest is the smallest of [Strongest], the best level of zstd, and gzip, for each batch. The
// best level makes a seventh less of some records, and more of others; gzip makes less of text that
// does not repeat itself over long distances. All take some seven times as long as the first, and
// 55 MB while a batch is compressed. So they are for batches that were refused.
func Tightest() kgo.Opt { return kgo.WithCompressor(newTightest()) }

func newTightest() *tightest { return &tightest{strongest: newStrongest()} }

type tightest struct {
	*strongest
	mu sync.Mutex // one batch at a time, for the sake of memory
}

// Compress compresses a batch as well as it can, unless it becomes no smaller.
func (t *tightest) Compress(dst *bytes.Buffer, src []byte, flags ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	out, codec := t.strongest.Compress(dst, src, flags...)
	if codec != kgo.CodecZstd { // there is nothing better, or the batch is noise
		return out, codec
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if best := newEncoder(zstd.SpeedBestCompression).EncodeAll(src, nil); len(best) < len(out) {
		out, codec = best, kgo.CodecZstd
	}
	if best := zipped(new(bytes.Buffer), src); len(best) < len(out) {
		out, codec = best, kgo.CodecGzip
	}
	return out, codec
}

// Codec is the compressor of a producer: that of its options, and [Tightest] while Tight is set.
type Codec struct {
	Tight atomic.Bool

	usual kgo.Compressor // nil: none
	tight *tightest
}

// NewCodec returns the compressor of a producer with these options.
func NewCodec(opts ...kgo.Opt) (*Codec, error) {
	cl, err := New(opts...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	usual, _ := cl.OptValue(kgo.WithCompressor).(kgo.Compressor)
	return &Codec{usual: usual, tight: newTightest()}, nil
}

// Compress compresses a batch.
func (c *Codec) Compress(dst *bytes.Buffer, src []byte, flags ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	switch {
	case c.Tight.Load():
		return c.tight.Compress(dst, src, flags...)
	case c.usual == nil:
		return src, kgo.CodecNone
	}
	return c.usual.Compress(dst, src, flags...)
}
