package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strconv"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// mostBranches bounds the branches that are noted for an edit.
const mostBranches = 100_000

// decoder reads a value.
type decoder struct {
	rest []byte
	w    *text.Writer
	// branches has the branch of each union by the path to it; nil if nobody asks.
	branches map[path]int
}

var errShort = errors.New("the value ends too early")

func (d *decoder) long() (int64, error) {
	n, size := binary.Varint(d.rest)
	if size == 0 {
		return 0, errShort
	} else if size < 0 {
		return 0, errors.New("a number has more than 64 bits")
	}
	d.rest = d.rest[size:]
	return n, nil
}

// take returns the next bytes.
func (d *decoder) take(n int64) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("a length is %d", n)
	}
	if n > int64(len(d.rest)) {
		return nil, errShort
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b, nil
}

// text returns the next bytes, whose length is before them.
func (d *decoder) text() ([]byte, error) {
	n, err := d.long()
	if err != nil {
		return nil, err
	}
	return d.take(n)
}

// path is where a value is within another one, as a hash: the names of a schema may be long.
type path uint64

var seed = maphash.MakeSeed()

// to is the path to a member or an element.
func (p path) to(name string) path {
	return path(maphash.Comparable(seed, step{p, name}))
}

type step struct {
	from path
	name string
}

// to is the path to a member or an element, if anybody asks.
func (d *decoder) to(at path, name string) path {
	if d.branches == nil {
		return 0
	}
	return at.to(name)
}

func (d *decoder) value(n *node, at path) error {
	if err := d.w.Enter(); err != nil {
		return err
	}
	defer d.w.Leave()
	switch n.kind {
	case "record":
		return d.record(n, at)
	case "array":
		return d.array(n, at)
	case "map":
		return d.object(n, at)
	case "union":
		i, err := d.index(len(n.branches))
		if err != nil {
			return fmt.Errorf("branch of a union: %w", err)
		}
		if d.branches != nil {
			if len(d.branches) == mostBranches {
				return fmt.Errorf("it has more than %d unions", mostBranches)
			}
			d.branches[at] = i
		}
		return d.value(n.branches[i], at)
	}
	return d.scalar(n)
}

func (d *decoder) index(most int) (int, error) {
	i, err := d.long()
	if err == nil && (i < 0 || i >= int64(most)) {
		err = fmt.Errorf("number %d of %d", i, most)
	}
	return int(i), err
}

func (d *decoder) scalar(n *node) error {
	switch n.kind {
	case "null":
		d.w.Raw("null")
	case "boolean":
		b, err := d.take(1)
		if err != nil {
			return err
		}
		d.w.Bool(b[0] != 0)
	case "int", "long":
		i, err := d.long()
		if err != nil {
			return err
		}
		if n.kind == "int" && int64(int32(i)) != i {
			return fmt.Errorf("an int is %d", i)
		}
		n.writeInt(d.w, i)
	case "float":
		b, err := d.take(4)
		if err != nil {
			return err
		}
		d.w.Float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
	case "double":
		b, err := d.take(8)
		if err != nil {
			return err
		}
		d.w.Float(math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
	case "enum":
		i, err := d.index(len(n.symbols))
		if err != nil {
			return fmt.Errorf("symbol of %s: %w", n.name, err)
		}
		d.w.String(n.symbols[i])
	case "string", "bytes":
		b, err := d.text()
		if err != nil {
			return err
		}
		return n.writeBytes(d.w, b)
	case "fixed":
		b, err := d.take(int64(n.size))
		if err != nil {
			return err
		}
		return n.writeBytes(d.w, b)
	default:
		return fmt.Errorf("type %q is not known", n.kind)
	}
	return nil
}

func (d *decoder) record(n *node, at path) error {
	d.w.Raw("{")
	for i, f := range n.fields {
		d.w.Member(f.name, i == 0)
		if err := d.value(f.of, d.to(at, f.name)); err != nil {
			return within(f.name, err)
		}
	}
	d.w.Raw("}")
	return nil
}

// blocks calls each for the elements of an array or a map.
func (d *decoder) blocks(each func(i int) error) error {
	for i := 0; ; {
		n, err := d.long()
		if err != nil || n == 0 {
			return err
		}
		if n < 0 {
			if _, err := d.long(); err != nil { // the block's size in bytes
				return err
			}
			if n = -n; n < 0 {
				return errors.New("a block has too many elements")
			}
		}
		for ; n > 0; n-- {
			if err := each(i); err != nil {
				return err
			}
			i++
		}
	}
}

func (d *decoder) array(n *node, at path) error {
	d.w.Raw("[")
	err := d.blocks(func(i int) error {
		if i > 0 {
			d.w.Raw(",")
		}
		return d.value(n.item, d.to(at, strconv.Itoa(i)))
	})
	d.w.Raw("]")
	return err
}

func (d *decoder) object(n *node, at path) error {
	d.w.Raw("{")
	seen := map[string]bool{}
	err := d.blocks(func(i int) error {
		key, err := d.text()
		if err != nil {
			return err
		}
		name := string(key)
		if seen[name] {
			d.w.Lossy("a map of it has a key twice, and an edit would lose one")
		}
		seen[name] = true
		d.w.Member(name, i == 0)
		return within(name, d.value(n.item, d.to(at, name)))
	})
	d.w.Raw("}")
	return err
}
