package headers

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	sinkHeaders []kgo.RecordHeader
	sinkMeta    Meta
)

// userHeaders are the headers of a producer with tracing.
func userHeaders() []kgo.RecordHeader {
	return []kgo.RecordHeader{
		{Key: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
		{Key: "content-type", Value: []byte("application/json")},
		{Key: "message-type", Value: []byte("order.created")},
		{Key: "tenant", Value: []byte("7")},
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, bm := range []struct {
		name   string
		reason Reason
	}{{"retry", ""}, {"dlq", ReasonTerminal}} {
		b.Run(bm.name, func(b *testing.B) {
			m, user := full(bm.reason), userHeaders()
			b.ReportAllocs()
			for b.Loop() {
				sinkHeaders = m.Append(user)
			}
		})
	}
	b.Run("first failure", func(b *testing.B) {
		m := full("")
		m.Redrive, m.Held, m.TraceParent, m.History = Redrive{}, false, "", m.History[:1]
		b.ReportAllocs()
		for b.Loop() {
			sinkHeaders = m.Append(nil)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	m := full("")
	h := m.Append(userHeaders())
	b.Run("retry", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sinkMeta, _ = Parse(h)
		}
	})
	b.Run("no reserved", func(b *testing.B) {
		h := userHeaders()
		b.ReportAllocs()
		for b.Loop() {
			sinkMeta, _ = Parse(h)
		}
	})
}

func BenchmarkStrip(b *testing.B) {
	m := full("")
	for _, bm := range []struct {
		name string
		h    []kgo.RecordHeader
	}{{"nothing", userHeaders()}, {"reserved", m.Append(userHeaders())}} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sinkHeaders = Strip(bm.h)
			}
		})
	}
}
