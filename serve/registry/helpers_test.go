package registry

import (
	"crypto/tls"
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/sidingkafka/siding/serve/payload"
)

// fake is a registry in this process, and what is asked of it.
func fake(t *testing.T, opts ...srfake.Option) *srfake.Registry {
	t.Helper()
	f := srfake.New(opts...)
	t.Cleanup(f.Close)
	return f
}

// open opens a registry at an address.
func open(t *testing.T, c payload.Registry) *Registry {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// later lets a registry believe that time has passed.
func (r *Registry) later(d time.Duration) {
	was := r.source.client.now
	now := func() time.Time { return was().Add(d) }
	r.source.client.now, r.source.schemas.now, r.source.parts.now = now, now, now
}

// framed is a value with the number of its schema.
func framed(id uint32, data ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, id), data...)
}

func value(b []byte, h ...kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{Topic: "orders.dlq", Value: b, Headers: h}
}

func avroOf(text string, refs ...sr.SchemaReference) sr.Schema {
	return sr.Schema{Schema: text, Type: sr.TypeAvro, References: refs}
}

func read(t *testing.T, r *Registry, rec *kgo.Record) string {
	t.Helper()
	d, err := r.Decode(t.Context(), rec, payload.Value)
	switch {
	case err != nil:
		return err.Error()
	case d == nil:
		return "nothing"
	}
	return string(d.JSON)
}

// tlsRequired wants a certificate of whoever asks.
func tlsRequired() *tls.Config { return &tls.Config{ClientAuth: tls.RequireAnyClientCert} }
