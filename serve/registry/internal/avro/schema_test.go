package avro

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

const all = `{"type":"record","name":"Order","namespace":"shop","fields":[
	{"name":"id","type":"long"},
	{"name":"n","type":"int"},
	{"name":"ok","type":"boolean"},
	{"name":"f","type":"float"},
	{"name":"d","type":"double"},
	{"name":"s","type":"string"},
	{"name":"b","type":"bytes"},
	{"name":"x","type":{"type":"fixed","name":"Two","size":2}},
	{"name":"e","type":{"type":"enum","name":"State","symbols":["OPEN","PAID"]}},
	{"name":"also","type":"State"},
	{"name":"tags","type":{"type":"array","items":"string"}},
	{"name":"attrs","type":{"type":"map","values":"long"}},
	{"name":"note","type":["null","string"],"default":null},
	{"name":"any","type":["null","long","string","bytes",{"type":"record","name":"Ref","fields":[{"name":"of","type":"string"}]}]},
	{"name":"next","type":["null","Order"],"default":null},
	{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
	{"name":"fixed","type":{"type":"fixed","name":"Dec","size":4,"logicalType":"decimal","precision":9,"scale":2}},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},
	{"name":"local","type":{"type":"long","logicalType":"local-timestamp-micros"}},
	{"name":"day","type":{"type":"int","logicalType":"date"}},
	{"name":"time","type":{"type":"int","logicalType":"time-millis"}},
	{"name":"uuid","type":{"type":"string","logicalType":"uuid"}},
	{"name":"uuid16","type":{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}},
	{"name":"span","type":{"type":"fixed","name":"Span","size":12,"logicalType":"duration"}}
]}`

// bytesOf is a value of the schema above, as library twmb/avro has written it: the middle has its
// unions.
func bytesOf(t *testing.T, union string) []byte {
	t.Helper()
	const head = "82808080808080200d01cdcccc3d9c7500883ce4377e0ac3a9220a0104ff000102020004026102620002026b0200"
	const tail = "04fb4b0000003286c59dabc568f0b6e3ded9ddb006e6c4028ae8dd0d4831323365343536372d653839622d343264332d613435362d343236363134313734303030123e4567e89b42d3a456426614174000010000000200000003000000"
	b, err := hex.DecodeString(head + strings.ReplaceAll(union, "itself", head+"000000"+tail) + tail)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// said is what it says.
func said(note, union, next string) string {
	return `{"id":9007199254740993,"n":-7,"ok":true,"f":0.1,"d":1e+300,"s":"é\"\n\u0001","b":"/wA=","x":"AQI=","e":"PAID","also":"OPEN","tags":["a","b"],"attrs":{"k":1},` +
		`"note":` + note + `,"any":` + union + `,"next":` + next + `,"amount":-12.05,"fixed":0.50,"at":"2026-11-30T04:25:49.123Z","local":"2026-11-30T04:25:49.123",` +
		`"day":"2026-11-30","time":"04:00:00.005","uuid":"123e4567-e89b-42d3-a456-426614174000","uuid16":"123e4567-e89b-42d3-a456-426614174000","span":{"months":1,"days":2,"millis":3}}`
}

func parsed(t *testing.T, source string, needed ...string) *Schema {
	t.Helper()
	s, err := Parse(source, needed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded(s *Schema, data []byte) (string, error) {
	w := text.NewWriter(1 << 20)
	if err := s.Decode(data, w); err != nil {
		return "", err
	}
	b, err := w.Text()
	return string(b), err
}

// Another library wrote the value. What is read is written back to the same bytes.
func TestSchema_ReadsAndWritesAsAnotherLibraryDoes(t *testing.T) {
	t.Parallel()
	s := parsed(t, all)
	for _, c := range []struct{ unions, note, union, next string }{
		{"000000", "null", "null", "null"},
		{"020278" + "020a" + "02itself", `"x"`, "5", said("null", "null", "null")},
		{"0200" + "040841414141" + "00", `""`, `"AAAA"`, "null"},
		{"0200" + "060874657874" + "00", `""`, `"dGV4dA=="`, "null"},
		{"0200" + "080279" + "00", `""`, `{"of":"y"}`, "null"},
	} {
		data, want := bytesOf(t, c.unions), said(c.note, c.union, c.next)
		got, err := decoded(s, data)
		if err != nil || got != want {
			t.Fatalf("%v\n%s is read, want\n%s", err, got, want)
		}
		back, err := s.Encode([]byte(got), data, text.NewWriter(1<<20))
		if err != nil || !bytes.Equal(back, data) {
			t.Errorf("%v: %x is written, want %x", err, back, data)
		}
	}
}

func TestParse_FindsTypesOfOthers(t *testing.T) {
	t.Parallel()
	const street = `{"type":"record","name":"Street","namespace":"geo","fields":[{"name":"no","type":"int"}]}`
	const address = `{"type":"record","name":"Address","namespace":"geo","fields":[{"name":"street","type":"Street"}]}`
	s := parsed(t, `{"type":"record","name":"Person","namespace":"people","fields":[{"name":"home","type":"geo.Address"},{"name":"of","type":["null","geo.Street"]}]}`, street, address)
	if got, err := decoded(s, []byte{14, 2, 4}); err != nil || got != `{"home":{"street":{"no":7}},"of":{"no":2}}` {
		t.Errorf("%s, %v", got, err)
	}
	if s.Name() != "people.Person" {
		t.Errorf("its name is %s", s.Name())
	}
	for source, want := range map[string]string{
		`{"type":"record","name":"Person","fields":[{"name":"home","type":"geo.Address"}]}`: "geo.Address",
		`{"type":"record"`: "no JSON", `"later"`: "later", strings.Repeat("[", 100_000): "deeper", `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}`: "twice",
		`{"type":"array"}`: "items of the array", `{"type":"enum"}`: "no name", `{"type":"fixed","name":"F","size":-1}`: "no size", `7`: "no type", `{}`: "no type",
		`[{"type":"enum","name":"E","symbols":[]},{"type":"enum","name":"E","symbols":[]}]`: "defined twice", `{"type":"record","name":"R"}`: "R: it has no list",
	} {
		if _, err := Parse(source, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", source, err, want)
		}
	}
}

// A type without a namespace, and one of the same name in the namespace.
func TestParse_FindsTheTypeOfTheNamespaceFirst(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"type":"record","name":"R","namespace":"a","fields":[
		{"name":"x","type":{"type":"enum","name":"E","namespace":"","symbols":["OUTER"]}},
		{"name":"y","type":{"type":"enum","name":"E","symbols":["INNER"]}},
		{"name":"z","type":"E"}]}`)
	if got, err := decoded(s, []byte{0, 0, 0}); err != nil || got != `{"x":"OUTER","y":"INNER","z":"INNER"}` {
		t.Errorf("%s, %v", got, err)
	}
}
