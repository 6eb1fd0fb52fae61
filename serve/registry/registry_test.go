package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sidingkafka/siding/serve/payload"
)

const (
	street = `{"type":"record","name":"Street","namespace":"geo","fields":[{"name":"no","type":"int"}]}`
	home   = `{"type":"record","name":"Address","namespace":"geo","fields":[{"name":"street","type":"Street"}]}`
	person = `{"type":"record","name":"Person","fields":[{"name":"home","type":"geo.Address"},{"name":"other","type":["null","geo.Street"]}]}`
)

// A registry in this process, and the real one that SIDING_REGISTRY names, such as
// http://localhost:8080/apis/ccompat/v7 of Apicurio's application from Maven Central.
func TestRegistry_ReadsAndWritesEachKind(t *testing.T) {
	t.Parallel()
	t.Run("fake", func(t *testing.T) {
		t.Parallel()
		readsAndWritesEachKind(t, fake(t).URL())
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		address := os.Getenv("SIDING_REGISTRY")
		if address == "" {
			t.Skip("SIDING_REGISTRY names no registry")
		}
		readsAndWritesEachKind(t, address)
	})
}

func readsAndWritesEachKind(t *testing.T, address string) {
	asks, err := sr.NewClient(sr.URLs(address))
	if err != nil {
		t.Fatal(err)
	}
	prefix := fmt.Sprint("siding-", time.Now().UnixNano(), "/ ")
	made := func(kind sr.SchemaType, subject, text string, refs ...sr.SchemaReference) uint32 {
		for i := range refs {
			refs[i].Subject, refs[i].Version = prefix+refs[i].Subject, 1
		}
		// The library's own call omits the type Avro, which Apicurio does not guess.
		body := map[string]any{"schema": text, "schemaType": kind, "references": refs}
		var is sr.SubjectSchema
		if err := asks.Do(t.Context(), http.MethodPost, "/subjects/"+url.PathEscape(prefix+subject)+"/versions", body, &is); err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		return uint32(is.ID)
	}
	ref := func(name, subject string) sr.SchemaReference { return sr.SchemaReference{Name: name, Subject: subject} }
	made(sr.TypeAvro, "street", street)
	made(sr.TypeAvro, "address", home, ref("geo.Street", "street"))
	avro := made(sr.TypeAvro, "person", person, ref("geo.Address", "address"), ref("geo.Street", "street"))
	made(sr.TypeProtobuf, "proto", `syntax = "proto3"; package geo; message Street { int32 no = 1; }`)
	proto := made(sr.TypeProtobuf, "home", `syntax = "proto3"; import "geo/street.proto"; message Other {} message Home { message Room { string name = 1; } geo.Street street = 1; Room room = 2; }`, ref("geo/street.proto", "proto"))
	made(sr.TypeJSON, "id", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"integer"}`)
	schema := made(sr.TypeJSON, "json", `{"$schema":"http://json-schema.org/draft-07/schema#","title":"Order","properties":{"id":{"$ref":"id.json"}}}`, ref("id.json", "id"))
	r := open(t, payload.Registry{URL: address})
	for _, c := range []struct {
		id         uint32
		data       []byte
		kind       payload.Kind
		name       string
		want, to   string
		written    []byte
		notWritten string
	}{
		{avro, []byte{14, 2, 4}, payload.Avro, "Person", `{"home":{"street":{"no":7}},"other":{"no":2}}`, `{"home":{"street":{"no":8}},"other":null}`, []byte{16, 0}, `{"home":{}}`},
		{proto, []byte{2, 2, 10, 2, 8, 7}, payload.Protobuf, "Home", `{"street":{"no":7}}`, `{"street":{"no":8},"room":{"name":"x"}}`, []byte{2, 2, 10, 2, 8, 8, 18, 3, 10, 1, 'x'}, `{"street":7}`},
		{proto, []byte{4, 2, 0, 10, 1, 'x'}, payload.Protobuf, "Home.Room", `{"name":"x"}`, `{}`, []byte{4, 2, 0}, `{"n":""}`},
		{proto, []byte{0}, payload.Protobuf, "Other", `{}`, `{}`, []byte{0}, `{"n":""}`},
		{schema, []byte(`{"id": 1}`), payload.JSONSchema, "Order", `{"id": 1}`, `{"id":2}`, []byte(`{"id":2}`), `{"id":"x"}`},
	} {
		is := framed(c.id, c.data...)
		was := bytes.Clone(is)
		d, err := r.Decode(t.Context(), value(is), payload.Value)
		if err != nil || string(d.JSON) != c.want || d.Kind != c.kind || d.Type != c.name || d.ID != int(c.id) || d.GUID != "" {
			t.Errorf("%x is %+v, %v, want %s of %s", is, d, err, c.want, c.name)
			continue
		}
		if got, err := r.Encode(t.Context(), value(is), payload.Value, []byte(c.to)); err != nil || !bytes.Equal(got, framed(c.id, c.written...)) {
			t.Errorf("%s is written as %x, %v, want %x", c.to, got, err, c.written)
		}
		if got, err := r.Encode(t.Context(), value(is), payload.Value, []byte(c.notWritten)); err == nil || !strings.Contains(err.Error(), "can't be written by schema") {
			t.Errorf("%s is written as %x, %v", c.notWritten, got, err)
		}
		if !bytes.Equal(was, is) {
			t.Errorf("the value %x has become %x", was, is)
		}
	}
	if got, err := r.Encode(t.Context(), value([]byte("text")), payload.Value, []byte(`"x"`)); err == nil {
		t.Errorf("what has no schema is written as %q", got)
	}
	if got := read(t, r, value(framed(1<<30))); !strings.HasSuffix(got, "the registry does not know it") {
		t.Errorf("a schema that is not there: %s", got)
	}
}

func TestRegistry_SaysInOneLineWhatIsWrong(t *testing.T) {
	t.Parallel()
	f := fake(t)
	f.SeedSchema("v", 1, 1, avroOf(`{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`))
	f.SeedSchema("w", 1, 2, avroOf(`{"type":"record","name":"a\nb"}`))
	f.SeedSchema("x", 1, 3, sr.Schema{Type: sr.TypeProtobuf, Schema: `nothing`})
	f.SeedSchema("y", 1, 4, avroOf(`{"type":"record","name":"P","fields":[{"name":"a","type":"gone"}]}`))
	r := open(t, payload.Registry{URL: f.URL()})
	for want, b := range map[string][]byte{
		"it does not fit schema 1, R: a: the value ends too early": framed(1, 9<<1),
		"schema 2: it can't be read: ":                             framed(2),
		"schema 3: it can't be read: ":                             framed(3),
		"schema 4: it can't be read: ":                             framed(4),
		"schema 99: the registry does not know it":                 framed(99),
		"it has more than 4194304 bytes":                           make([]byte, mostValue+10),
	} {
		if want[:2] == "it" && len(b) > mostValue {
			b[4] = 1
		}
		if got := read(t, r, value(b)); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%.20x: %q, want %q", b, got, want)
		}
	}
}

// A library that breaks on a schema must not end the program.
func TestGuarded_TurnsAPanicIntoAnError(t *testing.T) {
	t.Parallel()
	if err := guarded(func() error { panic("x\ny") }); err == nil || !strings.HasSuffix(err.Error(), "x y") {
		t.Error(err)
	}
}

// Close leaves nothing behind: not who waits, and no request.
func TestRegistry_CloseEndsWhatIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, err := newClient(payload.Registry{URL: "http://registry"}, func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		r, begin := &Registry{newSource(client, time.Now)}, time.Now()
		for range 3 {
			go func() {
				if got := read(t, r, value(framed(1))); !strings.HasPrefix(got, "schema 1: ") {
					t.Errorf("who waits has %s", got)
				}
			}()
		}
		synctest.Wait()
		r.Close()
		if _, err := r.Decode(t.Context(), value(framed(2)), payload.Value); !errors.Is(err, context.Canceled) || time.Since(begin) > 0 {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		synctest.Wait()
	})
}

// Schema, value, header and edit are a stranger's.
func FuzzRegistry(f *testing.F) {
	kinds := []sr.SchemaType{sr.TypeAvro, sr.TypeProtobuf, sr.TypeJSON}
	f.Add(uint8(0), street, framed(1, 2), []byte{}, []byte(`{"no":2}`))
	f.Add(uint8(1), `syntax = "proto3"; message M { M m = 1; string s = 2; }`, framed(1, 0, 10, 0), []byte{0, 0, 0, 0, 1, 0}, []byte(`{"m":{}}`))
	f.Add(uint8(1), "\"\\\xe9", framed(1), []byte{}, []byte{}) // protocompile panics
	f.Add(uint8(2), `{"type":"object"}`, framed(1, '{', '}'), []byte{1}, []byte(`{"m":{}}`))
	f.Fuzz(func(t *testing.T, kind uint8, source string, b, header, edit []byte) {
		r := &Registry{newSource(nil, time.Now)}
		var made *schema
		if guarded(func() (err error) { // as the cache does
			made, err = r.source.read(t.Context(), document{Type: kinds[int(kind)%3], Schema: source})
			return err
		}) != nil {
			return
		}
		known := &entry[*schema]{done: make(chan struct{}), value: made}
		close(known.done)
		for _, h := range [][]kgo.RecordHeader{nil, {{Key: "__value_schema_id", Value: header}}} {
			rec := value(b, h...)
			is, err := frameOf(rec, payload.Value)
			if err != nil || is == nil {
				continue
			}
			r.source.schemas.kept[is.path()] = known
			d, err := r.Decode(t.Context(), rec, payload.Value)
			if err != nil {
				continue
			}
			if !json.Valid(d.JSON) {
				t.Fatalf("%x is read as %s", b, d.JSON)
			}
			_, _ = r.Encode(t.Context(), rec, payload.Value, edit)
			_, _ = r.Encode(t.Context(), rec, payload.Value, d.JSON)
		}
	})
}
