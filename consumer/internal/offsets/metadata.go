package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/sidingkafka/siding/internal/commitmark"
)

// Metadata is what a commit says beside its offset, the floor. Kafka keeps it as a text with the
// offset, and gives it to the partition's next owner.
//
// The text has the mark of siding's commits, the version of the format, and fields that each begin
// with a letter, separated by spaces. Offsets in it count from the floor:
//
//	siding 1 f=2s p=4fzyo82 u=64 b=AQ
//
// f is the floor in base 36: a tool that moves a group's offset may keep the text, which is about
// other records then, and says nothing. A text without f is an older one, of the floor that it is
// committed with. p is the process that committed, a random number in base 36. u is Until. n, s, g,
// x and c are Deaths, Suspect, Singly, Alone and Condemned; a d after x or c says that the record
// was being decoded. g is written as r is. h is Guard; l, t and v are Lane. k is Heads, in base64:
// the first due second, then of each head how far it lies above the one before, its attempts, how
// much later it is due, and how long before that it failed first, all as varints.
//
// b and r are the records above the floor that are finished, as a bitmap or as run lengths,
// whichever holds more: base64 without padding. Bit i of the bitmap is the offset floor + i, the
// lowest bit of a byte first. Run lengths are unsigned varints: offsets that are not finished, then
// offsets that are, and so on. A reader ignores fields that it does not know, and the whole text if
// it does not know the version.
type Metadata struct {
	// Finished are spans above the floor in which all records are finished. They ascend, and do not
	// touch.
	Finished []Span
	Evidence
	// Guard is the state of the topic's guard, and Lane that of the partition. Other fields go
	// before these if there is little room.
	Guard commitmark.Guard
	Lane  commitmark.Lane
	// Heads wait for another attempt, each in front of its key. They ascend.
	Heads []Head
}

// Evidence is what a commit says about records that may kill the process.
// See DESIGN.md, "Records that kill the process".
type Evidence struct {
	// Process is the process that committed; 0 is none.
	Process uint64
	// Until bounds what it starts: no record at this offset or beyond. 0 means that nothing runs.
	Until int64
	// Deaths is how many processes in a row died before the floor reached Suspect, below which
	// their records lie.
	Deaths  int
	Suspect int64
	// Singly has the records that ran together when a process died. They run one by one.
	Singly []Span
	// Alone is the record that runs alone; nil for none.
	Alone *Alone
	// Condemned are the records that ran alone when a process died.
	Condemned []Alone
}

// Alone is a record that runs while no other does.
type Alone struct {
	Offset   int64
	Decoding bool // it is being decoded
}

// RunSingly has the record that runs alone be one of those that run one by one: it has killed
// nothing, and who reads the evidence has it run alone again.
func (e *Evidence) RunSingly() {
	if e.Alone != nil {
		e.Singly, e.Alone = Union(e.Singly, []Span{{e.Alone.Offset, e.Alone.Offset}}), nil
	}
}

// encode appends the fields that are set. singly has the run lengths of Singly.
func (e *Evidence) encode(b []byte, floor int64, singly []byte) []byte {
	if e.Process != 0 {
		b = strconv.AppendUint(append(b, " p="...), e.Process, 36)
	}
	if e.Until > floor {
		b = strconv.AppendInt(append(b, " u="...), e.Until-floor, 10)
	}
	if e.Deaths > 0 && e.Suspect > floor {
		b = strconv.AppendInt(append(b, " n="...), int64(e.Deaths), 10)
		b = strconv.AppendInt(append(b, " s="...), e.Suspect-floor, 10)
	}
	if len(singly) > 0 {
		b = append(b, " g="...)
		b = base64.RawStdEncoding.AppendEncode(b, singly)
	}
	if e.Alone != nil {
		b = e.Alone.encode(b, 'x', floor)
	}
	for _, a := range e.Condemned {
		b = a.encode(b, 'c', floor)
	}
	return b
}

func (a *Alone) encode(b []byte, name byte, floor int64) []byte {
	b = strconv.AppendInt(append(b, ' ', name, '='), a.Offset-floor, 10)
	if a.Decoding {
		b = append(b, 'd')
	}
	return b
}

// fit appends what fits into limit characters, coarser rather than less: it would otherwise forget
// a record that kills. Records that run one by one may become more than there are, down to a single
// span. Then the condemned that were found last become some of them, and kill once more.
func (e *Evidence) fit(b []byte, floor int64, limit int) []byte {
	for coarser := *e; ; {
		for size := maxSingly; ; size /= 2 {
			singly := coarse(floor, coarser.Singly, size)
			one := len(singly) == 0 && len(coarser.Singly) > 0
			if one {
				whole := Span{coarser.Singly[0].First, coarser.Singly[len(coarser.Singly)-1].Last}
				singly, _ = runLengths(floor, []Span{whole}, 2*binary.MaxVarintLen64)
			}
			if all := coarser.encode(slices.Clone(b), floor, singly); len(all) <= limit {
				return all
			}
			if one || size == 0 {
				break
			}
		}
		last := len(coarser.Condemned) - 1
		if last < 0 {
			return b
		}
		at := coarser.Condemned[last].Offset
		coarser.Condemned = coarser.Condemned[:last]
		coarser.Singly = Union(coarser.Singly, []Span{{at, at}})
	}
}

// coarse has the lengths of gaps and spans in turn, in at most size bytes. If they do not fit, it
// fills small gaps; it is empty if not even one span fits.
func coarse(floor int64, spans []Span, size int) []byte {
	for {
		runs, whole := runLengths(floor, spans, size)
		if whole {
			return runs
		}
		if len(spans) == 1 {
			return nil
		}
		gaps := make([]int64, len(spans)-1)
		for i := range gaps {
			gaps[i] = spans[i+1].First - spans[i].Last
		}
		slices.Sort(gaps)
		small := gaps[len(gaps)/2]
		var fewer []Span
		for _, s := range spans {
			if n := len(fewer); n > 0 && s.First-fewer[n-1].Last <= small {
				fewer[n-1].Last = s.Last
			} else {
				fewer = append(fewer, s)
			}
		}
		spans = fewer
	}
}

// maxSingly bounds the bytes of Singly, so that there is room for the rest.
const maxSingly = 1500

// parse reads a field. ok is false if it is broken; fields of others are not.
func (e *Evidence) parse(name, value string, floor int64) (ok bool) {
	offset := func(text string) (int64, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return floor + n, err == nil && n >= 0 && n <= 1<<62 && floor+n <= 1<<62
	}
	ok = true
	switch name {
	case "p":
		var err error
		e.Process, err = strconv.ParseUint(value, 36, 64)
		ok = err == nil
	case "u":
		e.Until, ok = offset(value)
	case "n":
		n, err := strconv.ParseInt(value, 10, 32)
		e.Deaths, ok = int(n), err == nil && n > 0
	case "s":
		e.Suspect, ok = offset(value)
	case "g":
		runs, err := base64.RawStdEncoding.DecodeString(value)
		if ok = err == nil; ok {
			e.Singly, ok = parseRunLengths(floor, runs)
		}
	case "x", "c":
		var a Alone
		value, a.Decoding = strings.CutSuffix(value, "d")
		a.Offset, ok = offset(value)
		if name == "x" {
			e.Alone = &a
		} else {
			e.Condemned = append(e.Condemned, a)
		}
	}
	return ok
}

const metadataVersion = "1"

// MetadataLimit is the number of characters that brokers accept by default
// (offset.metadata.max.bytes).
const MetadataLimit = 4096

// The least limits that have room for a guard, and for a lane as well, beside evidence.
const (
	roomForGuard = 8 * commitmark.MostField
	roomForLane  = 8 * (commitmark.MostField + commitmark.MostLane)
)

// Encode returns the metadata as a text of at most limit characters. Of the finished records, those
// farthest from the floor are left out if they do not fit. Heads and evidence have more room;
// evidence is made coarser. The mark is never left out.
func (m *Metadata) Encode(floor int64, limit int) string {
	plain := commitmark.Mark + " " + metadataVersion + " f=" + strconv.FormatInt(floor, 36)
	start := plain
	if limit >= roomForGuard {
		start += m.Guard.Field()
	}
	if limit >= roomForLane {
		start += m.Lane.Field()
	}
	head := appendHeads(string(m.fit([]byte(start), floor, limit)), floor, m.Heads, limit)
	if head == plain {
		plain = commitmark.Mark
	} else {
		plain = head
	}
	room := limit - len(head) - len(" b=")
	if len(m.Finished) == 0 || room < 2 {
		return plain
	}
	bytes := base64.RawStdEncoding.DecodedLen(room)
	field, body := " b=", bitmap(floor, m.Finished, bytes)
	runs, whole := runLengths(floor, m.Finished, bytes)
	if whole && len(runs) < len(body) || covers(floor, runs) > len(body)*8 {
		field, body = " r=", runs
	}
	if len(body) == 0 {
		return plain
	}
	return head + field + base64.RawStdEncoding.EncodeToString(body)
}

// bitmap has a bit for each offset from the floor on, in at most size bytes.
func bitmap(floor int64, finished []Span, size int) []byte {
	last := min(finished[len(finished)-1].Last-floor, int64(size)*8-1)
	bits := make([]byte, last/8+1)
	for _, s := range finished {
		for at := s.First - floor; at <= min(s.Last-floor, last); at++ {
			bits[at/8] |= 1 << (at % 8)
		}
	}
	for len(bits) > 0 && bits[len(bits)-1] == 0 {
		bits = bits[:len(bits)-1]
	}
	return bits
}

// runLengths has the lengths of gaps and spans in turn, in at most size bytes. whole reports
// whether all spans fit.
func runLengths(floor int64, finished []Span, size int) (runs []byte, whole bool) {
	at := floor
	for _, s := range finished {
		n := len(runs)
		runs = binary.AppendUvarint(runs, uint64(s.First-at))
		runs = binary.AppendUvarint(runs, uint64(s.Last-s.First+1))
		if len(runs) > size {
			return runs[:n], false
		}
		at = s.Last + 1
	}
	return runs, true
}

// covers returns how many offsets from the floor on the run lengths speak of.
func covers(floor int64, runs []byte) int {
	spans, _ := parseRunLengths(floor, runs)
	if len(spans) == 0 {
		return 0
	}
	return int(spans[len(spans)-1].Last - floor + 1)
}

// ParseMetadata reads the metadata of an offset that was committed at the floor. ok is false if the
// text is not siding's, is of another version or about another floor, or is broken: then the
// partition is read as if the commit said nothing.
func ParseMetadata(text string, floor int64) (m Metadata, ok bool) {
	fields := strings.Split(text, " ")
	if fields[0] != commitmark.Mark {
		return Metadata{}, false
	}
	if len(fields) == 1 {
		return Metadata{}, true
	}
	if fields[1] != metadataVersion {
		return Metadata{}, false
	}
	m.Guard, m.Lane = commitmark.ParseGuard(text, floor), commitmark.ParseLane(text, floor)
	for _, f := range fields[2:] {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "f":
			if at, err := strconv.ParseInt(value, 36, 64); err != nil || at != floor {
				return Metadata{}, false
			}
		case "k":
			m.Heads = parseHeads(floor, value)
		case "b", "r":
			body, err := base64.RawStdEncoding.DecodeString(value)
			if err != nil || m.Finished != nil {
				return Metadata{}, false
			}
			if name == "b" {
				m.Finished = parseBitmap(floor, body)
			} else if m.Finished, ok = parseRunLengths(floor, body); !ok {
				return Metadata{}, false
			}
		default:
			if !m.parse(name, value, floor) {
				return Metadata{}, false
			}
		}
	}
	if m.Suspect <= floor {
		m.Deaths, m.Suspect = 0, 0
	}
	return m, true
}

func parseBitmap(floor int64, bits []byte) (spans []Span) {
	for i := range int64(len(bits)) * 8 {
		if bits[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		if at, n := floor+i, len(spans); n > 0 && spans[n-1].Last == at-1 {
			spans[n-1].Last = at
		} else {
			spans = append(spans, Span{at, at})
		}
	}
	return spans
}

func parseRunLengths(floor int64, runs []byte) (spans []Span, ok bool) {
	at := floor
	for len(runs) > 0 {
		gap, n := binary.Uvarint(runs)
		if n <= 0 {
			return nil, false
		}
		length, k := binary.Uvarint(runs[n:])
		// No offset is beyond 2^62, and two spans do not touch.
		if k <= 0 || gap == 0 && len(spans) > 0 || length == 0 || gap > 1<<62 || length > 1<<62 || at+int64(gap) > 1<<62 || at+int64(gap)+int64(length) > 1<<62 {
			return nil, false
		}
		at += int64(gap)
		spans = append(spans, Span{at, at + int64(length) - 1})
		at += int64(length)
		runs = runs[n+k:]
	}
	return spans, true
}
