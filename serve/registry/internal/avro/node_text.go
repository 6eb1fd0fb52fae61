package avro

// The JSON of values.

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// Bounds of decimals: the digits of one take more time than they are long.
const (
	mostUnscaled = 1024 // bytes
	mostDigits   = 4096
)

// writeInt writes an int or a long. A time that its text can't have stays a number.
func (n *node) writeInt(w *text.Writer, i int64) {
	if t, layout, ok := n.time(i); ok {
		w.String(t.Format(layout))
		return
	}
	w.Int(i)
}

// writeBytes writes what a string, bytes or fixed has.
func (n *node) writeBytes(w *text.Writer, b []byte) error {
	switch {
	case n.kind == "string":
		w.String(string(b))
	case n.logical == "decimal":
		return n.writeDecimal(w, b)
	case n.logical == "uuid" && len(b) == 16:
		w.Raw(fmt.Sprintf(`"%x-%x-%x-%x-%x"`, b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
	case n.logical == "duration" && len(b) == 12:
		w.Raw(fmt.Sprintf(`{"months":%d,"days":%d,"millis":%d}`,
			binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])))
	default:
		w.Bytes(b)
	}
	return nil
}

func (n *node) writeDecimal(w *text.Writer, b []byte) error {
	if len(b) > mostUnscaled || n.scale > mostDigits {
		return fmt.Errorf("a decimal of %d bytes with the scale %d is not shown", len(b), n.scale)
	}
	unscaled := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	digits, negative := strings.CutPrefix(unscaled.String(), "-")
	if negative {
		w.Raw("-")
	}
	w.Raw(pointed(digits, n.scale))
	return nil
}

// pointed sets the point into digits.
func pointed(digits string, scale int) string {
	if scale <= 0 {
		return digits
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	return digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}
