// Package bubble lets Kafka clients and the embedded broker run in a testing/synctest bubble.
//
// kgo and kfake leave their decoders of zstd to a finalizer, which closes a channel from outside of
// the bubble: that ends the test binary at some later collection.
package bubble

import (
	"bytes"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// NewCluster starts an embedded broker on a network.
func NewCluster(network *kfake.VirtualNetwork, opts ...kfake.Opt) (*kfake.Cluster, error) {
	c, err := kfake.NewCluster(append(opts[:len(opts):len(opts)], kfake.ListenFn(network.Listen))...)
	if err == nil {
		Recode(c)
	}
	return c, err
}

// Opts are the options of a client of such a broker.
func Opts(network *kfake.VirtualNetwork) []kgo.Opt {
	return []kgo.Opt{kgo.Dialer(network.DialContext), kgo.WithDecompressor(Decompressor())}
}

// Decompressor decompresses batches, and leaves no decoder to a finalizer.
func Decompressor() kgo.Decompressor { return decompressor{kgo.DefaultDecompressor()} }

type decompressor struct{ kgo.Decompressor }

func (d decompressor) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecZstd {
		return decode(src)
	}
	return d.Decompressor.Decompress(src, codec)
}

func decode(src []byte) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(src, nil)
}

// Recode lets a cluster store batches of zstd in another codec, because kfake decodes them for its
// own purposes: to compact a topic, and to find an offset by time.
func Recode(c *kfake.Cluster) {
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		for _, t := range req.(*kmsg.ProduceRequest).Topics {
			for i := range t.Partitions {
				t.Partitions[i].Records = recoded(t.Partitions[i].Records)
			}
		}
		return nil, nil, false
	})
}

const (
	codecBits = 0x07     // of a batch's attributes
	beforeCRC = 21       // bytes of a batch that its checksum leaves out
	unlimited = 64 << 10 // bytes of a batch that any topic takes
)

// recoded returns a batch without compression, or by gzip, if that fits wherever it fits by zstd.
// Else it returns the batch as it is.
func recoded(batch []byte) []byte {
	var b kmsg.RecordBatch
	if b.ReadFrom(batch) != nil || b.Attributes&codecBits != int16(kgo.CodecZstd) {
		return batch
	}
	raw, err := decode(b.Records)
	if err != nil {
		return batch // a broker takes it
	}
	gzip, _ := kgo.DefaultCompressor(kgo.GzipCompression().WithLevel(9)) // the codec is valid
	zipped, _ := gzip.Compress(new(bytes.Buffer), raw)
	frame := len(batch) - len(b.Records)
	for codec, records := range [][]byte{kgo.CodecNone: raw, kgo.CodecGzip: zipped} {
		if frame+len(records) > max(len(batch), unlimited) {
			continue
		}
		b.Length += int32(len(records) - len(b.Records))
		b.Attributes, b.Records = b.Attributes&^codecBits|int16(codec), records
		b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[beforeCRC:], crc32.MakeTable(crc32.Castagnoli)))
		return b.AppendTo(nil)
	}
	return batch
}
