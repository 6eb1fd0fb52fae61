package registry

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sidingkafka/siding/serve/payload"
)

// frame is how a key or a value names its schema.
type frame struct {
	id   int    // 0 if the GUID counts
	guid string // in its usual text

	data   []byte // behind the name of the schema
	before []byte // of the value, up to data
	header bool   // that names the schema
	more   []byte // of the header, behind the schema's name
}

// headers are the names of the headers that name a schema.
var headers = map[payload.Side]string{payload.Key: "__key_schema_id", payload.Value: "__value_schema_id"}

const guidSize = 16

// errHeader is about a header that names no schema.
var errHeader = errors.New("it is no byte of 0 and four of an id, nor a byte of 1 and 16 of a GUID")

// frameOf returns nil if nothing names a schema.
func frameOf(r *kgo.Record, side payload.Side) (*frame, error) {
	b := side.Of(r)
	if b == nil {
		return nil, nil
	}
	if name, ok := headerOf(r, side); ok {
		f := &frame{data: b, before: b[:0], header: true}
		switch {
		case len(name) >= 5 && name[0] == 0:
			f.id, f.more = number(name), name[5:]
		case len(name) >= 1+guidSize && name[0] == 1:
			g := hex.EncodeToString(name[1 : 1+guidSize])
			f.guid, f.more = g[:8]+"-"+g[8:12]+"-"+g[12:16]+"-"+g[16:20]+"-"+g[20:], name[1+guidSize:]
		}
		if f.id == 0 && f.guid == "" {
			return nil, fmt.Errorf("header %s: %w", headers[side], errHeader)
		}
		return f, nil
	}
	if len(b) < 5 || b[0] != 0 || number(b) == 0 {
		return nil, nil
	}
	return &frame{id: number(b), before: b[:5], data: b[5:]}, nil
}

func headerOf(r *kgo.Record, side payload.Side) (value []byte, ok bool) {
	for _, h := range r.Headers {
		if h.Key == headers[side] {
			value, ok = h.Value, true
		}
	}
	return value, ok
}

// number is the schema's number, or 0 for one that no registry gives.
func number(b []byte) int {
	n := binary.BigEndian.Uint32(b[1:5])
	if n > math.MaxInt32 {
		return 0
	}
	return int(n)
}

// mostIndexes is how deep messages of protobuf may be within others.
const mostIndexes = 32

// indexes moves the indexes of protobuf's message out of the data, or of the header.
func (f *frame) indexes() ([]int, error) {
	from := f.data
	if f.header {
		from = f.more
	}
	all, rest, err := new(sr.ConfluentHeader).DecodeIndex(from, mostIndexes)
	if err != nil {
		return nil, errors.New("the indexes of the message are missing or broken")
	}
	for _, i := range all {
		if i < 0 {
			return nil, fmt.Errorf("the index of the message is %d", i)
		}
	}
	if !f.header {
		n := len(from) - len(rest)
		f.before, f.data = f.before[:len(f.before)+n], rest
	}
	return all, nil
}

// path is where the registry has the schema.
func (f *frame) path() string {
	if f.id != 0 {
		return "/schemas/ids/" + strconv.Itoa(f.id)
	}
	return "/schemas/guids/" + f.guid
}

// String is the schema's name in messages.
func (f *frame) String() string {
	if f.id != 0 {
		return fmt.Sprintf("schema %d", f.id)
	}
	return "schema " + f.guid
}
