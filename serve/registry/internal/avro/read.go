package avro

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// read returns JSON with its numbers as they were written.
func read(b []byte) (v any, err error) {
	if text.Depth(string(b)) > text.MostDepth {
		return nil, fmt.Errorf("the JSON nests deeper than %d levels", text.MostDepth)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is more than one value of JSON")
	}
	return v, nil
}
