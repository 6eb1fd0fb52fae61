package client

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

// No codec of another client that Go has makes less of a batch.
func TestTightest(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 30_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise) // it never fails
	text, rnd := []byte(nil), rand.New(rand.NewPCG(1, 2))
	for len(text) < 100_000 {
		text = fmt.Appendf(text, `{"order":%d,"state":"%s"},`, rnd.IntN(100_000), []string{"shipped", "returned", "paid"}[rnd.IntN(3)])
	}
	for name, tt := range map[string]struct {
		src   []byte
		flags []kgo.CompressFlag
		want  kgo.CompressionCodecType
	}{
		"noise":             {noise, nil, kgo.CodecNone},
		"text":              {text, nil, kgo.CodecGzip},
		"text, old brokers": {text, []kgo.CompressFlag{kgo.CompressDisableZstd}, kgo.CodecGzip},
		"far repetition":    {bytes.Join([][]byte{noise, text, noise}, nil), nil, kgo.CodecZstd},
	} {
		dst := new(bytes.Buffer)
		out, codec := newTightest().Compress(dst, tt.src, tt.flags...)
		if codec != tt.want {
			t.Errorf("%s: codec %v, want %v", name, codec, tt.want)
		}
		if strong, _ := newStrongest().Compress(new(bytes.Buffer), tt.src, tt.flags...); codec == kgo.CodecZstd && len(out) >= len(strong) {
			t.Errorf("%s: %d bytes, and %d by the level below", name, len(out), len(strong))
		}
		got := tt.src
		switch codec {
		case kgo.CodecGzip:
			r, err := gzip.NewReader(bytes.NewReader(out))
			if err != nil {
				t.Fatal(err)
			}
			b := new(bytes.Buffer)
			_, _ = b.ReadFrom(r)
			got = b.Bytes()
		case kgo.CodecZstd:
			r, _ := zstd.NewReader(nil)
			got, _ = r.DecodeAll(out, nil)
			r.Close()
		}
		if !bytes.Equal(got, tt.src) {
			t.Errorf("%s: %d bytes come back of %d", name, len(got), len(tt.src))
		}
	}
}
