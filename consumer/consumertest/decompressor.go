package consumertest

import (
	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

// decompressor reads batches in virtual time. kgo keeps its decoders of zstd until a finalizer
// closes them, outside of the test's bubble: that ends the test binary.
type decompressor struct{ kgo.Decompressor }

func (d decompressor) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec != kgo.CodecZstd {
		return d.Decompressor.Decompress(src, codec)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(src, nil)
}
