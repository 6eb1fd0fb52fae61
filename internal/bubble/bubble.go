// Package bubble lets Kafka clients and the embedded broker run in a testing/synctest bubble.
//
// kgo and kfake leave their decoders of zstd to a finalizer, which closes a channel from outside of
// the bubble: that ends the test binary at some later collection.
//
// A virtual hour takes as much real time as its requests. Most are an idle consumer's: heartbeats,
// fetches that find nothing, and polls of the topics, which are as rare as heartbeats. So these are
// rarer than in production.
package bubble

import (
	"bytes"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// heartbeat is a third of the session timeout, the most that Kafka recommends.
	heartbeat      = 20 * time.Second
	sessionTimeout = 3 * heartbeat
	// longestFetch bounds the wait of a fetch.
	longestFetch = 2 * time.Minute
	// shortestFetch is twice the wait that consumers ask for in production.
	shortestFetch = 500 * time.Millisecond
)

// NewCluster starts an embedded broker on a network.
func NewCluster(network *kfake.VirtualNetwork, opts ...kfake.Opt) (*kfake.Cluster, error) {
	c, err := kfake.NewCluster(append(opts[:len(opts):len(opts)], kfake.ListenFn(network.Listen), kfake.BrokerConfigs(map[string]string{
		"group.consumer.heartbeat.interval.ms": strconv.FormatInt(heartbeat.Milliseconds(), 10),
		"group.consumer.session.timeout.ms":    strconv.FormatInt(sessionTimeout.Milliseconds(), 10),
	}))...)
	if err == nil {
		Recode(c)
		lengthenFetches(c)
	}
	return c, err
}

// Opts are the options of a client of such a broker.
func Opts(network *kfake.VirtualNetwork) []kgo.Opt {
	return []kgo.Opt{
		kgo.Dialer(network.DialContext), kgo.WithDecompressor(Decompressor()),
		kgo.FetchMaxWait(longestFetch), kgo.ConnIdleTimeout(15 * time.Minute), kgo.MetadataMinAge(time.Second),
		kgo.HeartbeatInterval(heartbeat), kgo.SessionTimeout(sessionTimeout),
	}
}

// lengthenFetches makes a fetch that finds nothing wait for half a second, or for a tenth of the
// time since something changed. A partition that a client adds or resumes waits for the fetch in
// progress, so that is how late its records are at most. What programs ask in each round changes
// nothing.
func lengthenFetches(c *kfake.Cluster) {
	last := time.Now()
	c.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		switch req := req.(type) {
		case *kmsg.FetchRequest:
			wait := min(max(shortestFetch, time.Since(last)/10), longestFetch)
			req.MaxWaitMillis = min(req.MaxWaitMillis, int32(wait.Milliseconds()))
		case *kmsg.HeartbeatRequest, *kmsg.ConsumerGroupHeartbeatRequest, *kmsg.MetadataRequest, *kmsg.ApiVersionsRequest,
			*kmsg.OffsetFetchRequest, *kmsg.ListOffsetsRequest, *kmsg.FindCoordinatorRequest, *kmsg.DescribeConfigsRequest,
			*kmsg.ListGroupsRequest, *kmsg.DescribeGroupsRequest, *kmsg.ConsumerGroupDescribeRequest, *kmsg.DescribeProducersRequest,
			*kmsg.SASLHandshakeRequest, *kmsg.SASLAuthenticateRequest:
		default:
			last = time.Now()
		}
		return nil, nil, false
	})
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
	codec, records, fits := kgo.CodecNone, raw, max(len(batch), unlimited)-(len(batch)-len(b.Records))
	if len(raw) > fits {
		gzip, _ := kgo.DefaultCompressor(kgo.GzipCompression().WithLevel(9)) // the codec is valid
		if records, codec = gzip.Compress(new(bytes.Buffer), raw); len(records) > fits {
			return batch
		}
	}
	b.Length += int32(len(records) - len(b.Records))
	b.Attributes, b.Records = b.Attributes&^codecBits|int16(codec), records
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[beforeCRC:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}
