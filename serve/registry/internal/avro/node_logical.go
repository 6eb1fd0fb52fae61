package avro

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// units are the logical types that count time, by the nanoseconds that they count.
var units = map[string]time.Duration{
	"timestamp-millis": time.Millisecond, "timestamp-micros": time.Microsecond, "timestamp-nanos": 1,
	"local-timestamp-millis": time.Millisecond, "local-timestamp-micros": time.Microsecond, "local-timestamp-nanos": 1,
}

const (
	layoutLocal = "2006-01-02T15:04:05.999999999"
	layoutTime  = "15:04:05.999999999"
)

// time returns the time that a number means, and its layout.
func (n *node) time(i int64) (t time.Time, layout string, ok bool) {
	unit := units[n.logical]
	switch {
	case unit > 0 && n.kind == "long":
		perSecond := int64(time.Second / unit)
		seconds, part := i/perSecond, i%perSecond
		if part < 0 {
			seconds, part = seconds-1, part+perSecond
		}
		t, layout = time.Unix(seconds, part*int64(unit)).UTC(), time.RFC3339Nano
		if strings.HasPrefix(n.logical, "local-") {
			layout = layoutLocal
		}
	case n.logical == "date" && n.kind == "int":
		t, layout = time.Unix(i*24*60*60, 0).UTC(), time.DateOnly
	case n.logical == "time-millis" && n.kind == "int" && i >= 0 && i < int64(24*time.Hour/time.Millisecond):
		return time.Time{}.Add(time.Duration(i) * time.Millisecond), layoutTime, true
	case n.logical == "time-micros" && n.kind == "long" && i >= 0 && i < int64(24*time.Hour/time.Microsecond):
		return time.Time{}.Add(time.Duration(i) * time.Microsecond), layoutTime, true
	default:
		return t, "", false
	}
	return t, layout, t.Year() >= 1 && t.Year() <= 9999
}

// logical are the kinds that logical types are made of.
var logical = map[string]string{
	"date": "int", "time-millis": "int", "time-micros": "long",
	"timestamp-millis": "long", "timestamp-micros": "long", "timestamp-nanos": "long",
	"local-timestamp-millis": "long", "local-timestamp-micros": "long", "local-timestamp-nanos": "long",
	"decimal": "bytes fixed", "uuid": "fixed", "duration": "fixed",
}

// means reads the logical type. One that is not known, or not valid, is none.
func (n *node) means(v map[string]any) {
	name, _ := v["logicalType"].(string)
	if !slices.Contains(strings.Fields(logical[name]), n.kind) || name == "uuid" && n.size != 16 || name == "duration" && n.size != 12 {
		return
	}
	if name == "decimal" {
		precision, ok := whole(v["precision"])
		scale, scaled := whole(v["scale"])
		if !ok || precision == 0 || scale > precision || v["scale"] != nil && !scaled {
			return
		}
		n.most, n.scale = precision, scale
	}
	n.logical = name
}

// whole returns a number from 0 on.
func whole(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return int(i), err == nil && i >= 0 && i <= 1<<31-1
}
