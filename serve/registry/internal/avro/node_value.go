package avro

// The values that JSON means.

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// whole returns the number of an int or a long.
func (n *node) whole(v any) (int64, error) {
	if s, ok := v.(string); ok {
		return n.number(s)
	}
	return wholeOf(v)
}

func wholeOf(v any) (int64, error) {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i, nil
		}
		return 0, fmt.Errorf("%s is no whole number of 64 bits", brief(v.String()))
	}
	return 0, wrong(v, "a whole number")
}

// number returns the number that a time's text means.
func (n *node) number(s string) (int64, error) {
	unit, layout := units[n.logical], time.RFC3339Nano
	switch {
	case n.logical == "date":
		layout = time.DateOnly
	case n.logical == "time-millis":
		unit, layout = time.Millisecond, layoutTime
	case n.logical == "time-micros":
		unit, layout = time.Microsecond, layoutTime
	case unit == 0:
		return 0, fmt.Errorf("%s has to be a number", kindOf(s))
	case strings.HasPrefix(n.logical, "local-"):
		layout = layoutLocal
	}
	t, err := time.Parse(layout, s)
	if err != nil {
		return 0, fmt.Errorf("%s is no %s in the form %s", kindOf(s), n.logical, strings.NewReplacer("Z07:00", "Z", ".999999999", "").Replace(layout))
	}
	if layout == time.DateOnly {
		return t.Unix() / (24 * 60 * 60), nil
	}
	seconds := t.Unix()
	if layout == layoutTime {
		seconds = int64(t.Hour()*3600 + t.Minute()*60 + t.Second())
	}
	if int64(t.Nanosecond())%int64(unit) != 0 {
		return 0, fmt.Errorf("%s is finer than a %s keeps", kindOf(s), n.logical)
	}
	perSecond := int64(time.Second / unit)
	i := seconds*perSecond + int64(t.Nanosecond())/int64(unit)
	if back, _, _ := n.time(i); layout != layoutTime && !back.Equal(t) {
		return 0, fmt.Errorf("%s is out of the range of a %s", kindOf(s), n.logical)
	}
	return i, nil
}

// float returns the number of a float or a double.
func (n *node) float(v any) (f float64, err error) {
	switch v := v.(type) {
	case json.Number:
		bits := 64
		if n.kind == "float" {
			bits = 32
		}
		if f, err = strconv.ParseFloat(v.String(), bits); err != nil {
			return 0, fmt.Errorf("%s does not fit a %s", brief(v.String()), n.kind)
		}
	case string:
		switch v {
		case "NaN":
			f = math.NaN()
		case "Infinity":
			f = math.Inf(1)
		case "-Infinity":
			f = math.Inf(-1)
		default:
			return 0, wrong(v, "a number")
		}
	default:
		return 0, wrong(v, "a number")
	}
	return f, nil
}

// bytes returns the bytes of a bytes or a fixed.
func (n *node) bytes(v any) (b []byte, err error) {
	switch v := v.(type) {
	case []byte: // a default
		b = v
	case json.Number:
		if n.logical != "decimal" {
			return nil, wrong(v, "bytes in base64")
		}
		b, err = n.unscaled(v.String())
	case string:
		b, err = n.octets(v)
	case map[string]any:
		if n.logical != "duration" || n.size != 12 {
			return nil, wrong(v, "bytes in base64")
		}
		b, err = duration(v)
	default:
		return nil, wrong(v, "bytes in base64")
	}
	if err == nil && n.kind == "fixed" && len(b) != n.size {
		err = fmt.Errorf("it has %d bytes, and %s has %d", len(b), n.name, n.size)
	}
	return b, err
}

// unscaled returns the bytes of a decimal from its text.
func (n *node) unscaled(s string) ([]byte, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if e, err := strconv.Atoi(exponent); len(mantissa) > mostDigits || exponent != "" && (err != nil || e < -mostDigits || e > mostDigits) || n.scale > mostDigits {
		return nil, fmt.Errorf("%s is too long for a decimal", kindOf(s))
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || strings.ContainsAny(s, "/_xXpP") {
		return nil, fmt.Errorf("%s is no decimal number", kindOf(s))
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.scale)), nil)))
	if !r.IsInt() {
		return nil, fmt.Errorf("%s has more digits behind the point than the %d of the schema", kindOf(s), n.scale)
	}
	i := r.Num()
	if digits := strings.TrimPrefix(i.String(), "-"); n.most > 0 && len(digits) > n.most {
		return nil, fmt.Errorf("%s has more digits than the %d of the schema", kindOf(s), n.most)
	}
	size := i.BitLen()/8 + 1
	if i.Sign() < 0 { // -128 needs one byte, and 128 needs two
		size = new(big.Int).Not(i).BitLen()/8 + 1
	}
	if n.kind == "fixed" {
		if size > n.size {
			return nil, fmt.Errorf("%s does not fit %d bytes", kindOf(s), n.size)
		}
		size = n.size
	}
	if i.Sign() < 0 {
		i = new(big.Int).Add(i, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return i.FillBytes(make([]byte, size)), nil
}

// octets returns the bytes that a text means.
func (n *node) octets(s string) ([]byte, error) {
	switch {
	case n.logical == "decimal":
		return n.unscaled(s)
	case n.logical == "uuid" && n.kind == "fixed" && n.size == 16:
		b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		if err != nil || len(b) != 16 || len(s) != 36 {
			return nil, fmt.Errorf("%s is no UUID", kindOf(s))
		}
		return b, nil
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%s is not bytes in base64", kindOf(s))
	}
	return b, nil
}

// duration returns the bytes of a duration.
func duration(v map[string]any) ([]byte, error) {
	var b []byte
	for _, name := range []string{"months", "days", "millis"} {
		n, err := wholeOf(v[name])
		if err != nil || n < 0 || n > 1<<32-1 || len(v) != 3 {
			return nil, errors.New(`a duration has the form {"months":1,"days":2,"millis":3}`)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b, nil
}

// meant returns a default as the JSON that Decode would write, but for bytes, which are themselves:
// a schema has them as text of which each letter is a byte.
func (n *node) meant(v any) any {
	switch v := v.(type) {
	case string:
		switch {
		case n.kind == "union" && len(n.branches) > 0:
			return n.branches[0].meant(v)
		case n.kind != "bytes" && n.kind != "fixed":
			return v
		}
		b := make([]byte, 0, len(v))
		for _, r := range v {
			b = append(b, byte(r))
		}
		return b
	case []any:
		made := make([]any, len(v))
		for i := range v {
			made[i] = n.part("").meant(v[i])
		}
		return made
	case map[string]any:
		made := make(map[string]any, len(v))
		for name := range v {
			made[name] = n.part(name).meant(v[name])
		}
		return made
	}
	return v
}

// part is the type of a value within one of this type; of what a default can't have, it is empty.
func (n *node) part(name string) *node {
	switch {
	case n.kind == "union" && len(n.branches) > 0:
		return n.branches[0].part(name)
	case n.item != nil:
		return n.item
	}
	if i, ok := n.byName[name]; ok {
		return n.fields[i].of
	}
	return &node{}
}
