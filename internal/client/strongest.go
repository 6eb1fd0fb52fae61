package client

import (
	"bytes"
	"compress/gzip"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Strongest lets a producer compress its batches as far as brokers can read them, whatever the
// user's options say: zstd, or gzip for brokers before Kafka 2.1. So a record that its source took
// fits into its siblings. kgo's own zstd looks back 64 KiB, where other clients look back
// megabytes.
func Strongest() kgo.Opt {
	return kgo.WithCompressor(&strongest{encoders: sync.Pool{New: func() any {
		// The best level takes 100 MB a batch.
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(8<<20))
		if err != nil {
			panic(err) // its options are constants
		}
		return e
	}}})
}

type strongest struct{ encoders sync.Pool }

// Compress compresses a batch, unless it becomes no smaller.
func (s *strongest) Compress(dst *bytes.Buffer, src []byte, flags ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	out, codec := []byte(nil), kgo.CodecZstd
	if slices.Contains(flags, kgo.CompressDisableZstd) {
		codec = kgo.CodecGzip
		w, _ := gzip.NewWriterLevel(dst, gzip.BestCompression) // the level is valid
		_, _ = w.Write(src)                                    // a buffer takes all
		_ = w.Close()
		out = dst.Bytes()
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
