package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sidingkafka/siding/serve/payload"
	"github.com/sidingkafka/siding/serve/registry/internal/avro"
	"github.com/sidingkafka/siding/serve/registry/internal/jsonschema"
	"github.com/sidingkafka/siding/serve/registry/internal/protobuf"
)

// Bounds of a schema with all that it refers to.
const (
	mostSchema     = 1 << 20 // bytes of one
	mostSchemas    = 4 << 20 // bytes of all
	mostReferences = 200
	mostChain      = 32 // of references of references
)

// source reads schemas from a registry, with those that they refer to.
type source struct {
	client  *client
	end     func()
	schemas *cache[*schema]  // by id and GUID
	parts   *cache[document] // that others refer to, by subject and version
}

// schema is one of the three; the others are nil.
type schema struct {
	kind  payload.Kind
	avro  *avro.Schema
	proto *protobuf.Schema
	json  *jsonschema.Schema
}

func newSource(c *client, now func() time.Time) *source {
	life, end := context.WithCancel(context.Background())
	return &source{client: c, end: end, schemas: newCache[*schema](life, now), parts: newCache[document](life, now)}
}

// close ends all requests, and waits for it.
func (s *source) close() {
	s.end()
	s.schemas.wait()
	s.parts.wait()
	s.client.idle()
}

// find returns the schema that a frame names.
func (s *source) find(ctx context.Context, f *frame) (*schema, error) {
	path := f.path()
	return s.schemas.get(ctx, path, func(ctx context.Context) (*schema, error) {
		is, err := s.client.get(ctx, path)
		if err != nil {
			return nil, err
		}
		return s.read(ctx, is)
	})
}

// read reads a schema that the registry has.
func (s *source) read(ctx context.Context, is document) (*schema, error) {
	w := walk{source: s, kind: is.Type, found: map[string]string{}, seen: map[string]string{}}
	if err := w.take(is); err != nil {
		return nil, err
	}
	if err := w.references(ctx, is.References, 1); err != nil {
		return nil, err
	}
	made := &schema{}
	var err error
	switch is.Type {
	case sr.TypeAvro:
		made.kind = payload.Avro
		made.avro, err = avro.Parse(is.Schema, w.order)
	case sr.TypeProtobuf:
		made.kind = payload.Protobuf
		made.proto, err = protobuf.Parse(is.Schema, w.found)
	case sr.TypeJSON:
		made.kind = payload.JSONSchema
		made.json, err = jsonschema.Parse(is.Schema, w.found)
	default:
		return nil, fmt.Errorf("it is of the type %v, which is not known here", is.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("it can't be read: %s", oneLine(err.Error()))
	}
	return made, nil
}

// walk collects what a schema refers to.
type walk struct {
	*source
	kind  sr.SchemaType
	found map[string]string // texts by the name of the reference
	order []string          // texts, each behind those that it needs
	seen  map[string]string // texts by subject and version; empty while it is being read
	bytes int
}

// take counts a schema's text.
func (w *walk) take(is document) error {
	w.bytes += len(is.Schema)
	switch {
	case is.Schema == "":
		return errors.New("the registry's answer has no schema")
	case len(is.Schema) > mostSchema:
		return fmt.Errorf("it has more than %d bytes", mostSchema)
	case w.bytes > mostSchemas:
		return fmt.Errorf("with those that it refers to it has more than %d bytes", mostSchemas)
	}
	return nil
}

func (w *walk) references(ctx context.Context, all []sr.SchemaReference, chain int) error {
	if len(all) > 0 && chain > mostChain {
		return fmt.Errorf("its references lead from one to the next more than %d times", mostChain)
	}
	for _, r := range all {
		path := fmt.Sprintf("/subjects/%s/versions/%d", url.PathEscape(r.Subject), r.Version)
		text, seen := w.seen[path]
		switch {
		case text != "": // several may refer to it, each by a name of its own
			w.found[r.Name] = text
			continue
		case seen:
			return fmt.Errorf("its references lead back to version %d of %s", r.Version, oneLine(r.Subject))
		case len(w.seen) == mostReferences:
			return fmt.Errorf("it refers to more than %d others", mostReferences)
		}
		w.seen[path] = ""
		if err := w.reference(ctx, r, path, chain); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) reference(ctx context.Context, r sr.SchemaReference, path string, chain int) error {
	named := func(err error) error {
		if err != nil {
			return fmt.Errorf("version %d of %s, which it refers to: %w", r.Version, oneLine(r.Subject), err)
		}
		return nil
	}
	is, err := w.parts.get(ctx, path, func(ctx context.Context) (document, error) { return w.client.get(ctx, path) })
	if err == nil && is.Type != w.kind {
		err = fmt.Errorf("it is of the type %v, and not %v", is.Type, w.kind)
	}
	if err == nil {
		err = w.take(is)
	}
	if err != nil {
		return named(err)
	}
	if err := w.references(ctx, is.References, chain+1); err != nil {
		return named(err)
	}
	w.found[r.Name], w.seen[path] = is.Schema, is.Schema
	w.order = append(w.order, is.Schema)
	return nil
}
