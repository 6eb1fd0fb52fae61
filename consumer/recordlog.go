package consumer

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/retrytopics"
)

// recordLog counts what became of records, and logs it in few lines. A line for each record
// would fill the log when an outage fails thousands of them. So the first of a kind has a line,
// and lines with numbers follow while it lasts: see [logthrottle.Storms]. At the debug level,
// each record has a line.
type recordLog struct {
	log    *slog.Logger
	counts recordCounts
	storms logthrottle.Storms[recordKind, recordExample]
}

// recordCounts are the numbers of a consumer's records by what became of them. Failed records count
// when it is decided what becomes of them. Unlike siding.routed.records, a record whose copy proves
// too large does not count twice: see takeBack. Cancelled handlers are those of lanes that were
// revoked.
type recordCounts struct{ handled, parked, deadLettered, discarded, cancelled atomic.Int64 }

// recordEvent has the texts about something that happens to records, or about something else that
// may happen as often.
type recordEvent struct {
	level           slog.Level
	one, many, over string
	unit            string                            // what is counted
	of              func(*recordCounts) *atomic.Int64 // nil if it counts nowhere
}

// The first two say "goes": they are logged when that is decided, before the copy is acknowledged.
var (
	eventParked = &recordEvent{
		slog.LevelInfo,
		"siding: record goes to a retry topic", "siding: records go to a retry topic", "siding: no more records go to a retry topic",
		"records", func(c *recordCounts) *atomic.Int64 { return &c.parked },
	}
	eventHeld = &recordEvent{
		slog.LevelInfo,
		"siding: record waits in its partition, and so do later ones of its key",
		"siding: records wait in their partition, and so do later ones of their keys",
		"siding: no more records wait in their partition",
		"records", func(c *recordCounts) *atomic.Int64 { return &c.parked },
	}
	eventDeadLettered = &recordEvent{
		slog.LevelWarn,
		"siding: record goes to the dead-letter topic", "siding: records go to the dead-letter topic", "siding: no more records go to the dead-letter topic",
		"records", func(c *recordCounts) *atomic.Int64 { return &c.deadLettered },
	}
	eventDiscarded = &recordEvent{
		slog.LevelWarn,
		"siding: record discarded", "siding: records discarded", "siding: no more records are discarded",
		"records", func(c *recordCounts) *atomic.Int64 { return &c.discarded },
	}
	eventMalformed = &recordEvent{
		slog.LevelError,
		"siding: record on a retry topic has broken headers; it is dead-lettered unchanged",
		"siding: records on a retry topic have broken headers; they are dead-lettered unchanged",
		"siding: no more records have broken headers",
		"records", func(c *recordCounts) *atomic.Int64 { return &c.deadLettered },
	}
	eventOmitted = &recordEvent{
		slog.LevelError,
		"siding: dead letter written without its value, which does not fit; raise the topic's max.message.bytes",
		"siding: dead letters written without their values, which do not fit; raise the topic's max.message.bytes",
		"siding: no more dead letters are written without their values",
		"values", nil,
	}
	eventNoteLost = &recordEvent{
		slog.LevelError,
		"siding: a record was discarded, but the ledger could not be written",
		"siding: records were discarded, but the ledger could not be written",
		"siding: no more records are discarded without the ledger",
		"notes", nil,
	}
	eventRefused = &recordEvent{
		slog.LevelError,
		"siding: a copy was refused; the lane waits and tries again",
		"siding: copies were refused; their lanes wait and try again",
		"siding: no more copies are refused for that reason",
		"refusals", nil,
	}
	eventFetch = &recordEvent{
		slog.LevelError,
		"siding: a fetch failed", "siding: fetches failed", "siding: no more fetches fail for that reason",
		"fetches", nil,
	}
	eventSession = &recordEvent{
		slog.LevelWarn,
		"siding: the group session ended; the member joins again",
		"siding: group sessions ended; the member joins again",
		"siding: the group session no longer ends for that reason",
		"sessions", nil,
	}
	eventStartUnknown = &recordEvent{
		slog.LevelWarn,
		"siding: the start of a partition is not known yet; other partitions are not affected",
		"siding: the starts of partitions are not known yet; other partitions are not affected",
		"siding: no more partitions lack a start for that reason",
		"times", nil,
	}
	eventOverdue = &recordEvent{
		slog.LevelError,
		"siding: a handler ignores its timeout; siding cannot end it",
		"siding: handlers ignore their timeout; siding cannot end them",
		"siding: no more handlers ignore their timeout",
		"handlers", nil,
	}
	eventStuck = &recordEvent{
		slog.LevelError,
		"siding: a handler ignores its cancellation; its record runs again under the next owner",
		"siding: handlers ignore their cancellation; their records run again under the next owner",
		"siding: no more handlers ignore their cancellation",
		"handlers", nil,
	}
)

// recordKind is what the records of a line have in common. Empty fields have no attribute.
type recordKind struct {
	event                  *recordEvent
	topic                  string        // the source
	tier                   time.Duration // of the retry topic that parked records went to
	by                     string        // who discards
	to, reason, class, why string        // why is a mask, so that values do not make many lines
}

// recordExample is what a line says of one record.
type recordExample struct {
	partition int32
	feed      string // where it was read, if not at its original position
	offset    int64  // negative if the line is about no record
	attempts  int
	error     string
	about     []any // further attributes
}

func (g *recordLog) init(log *slog.Logger) {
	g.log = log
	g.storms.Report = g.report
	g.storms.Rest = func(k recordKind) recordKind {
		k.class, k.why = "other", ""
		return k
	}
}

// countHandled counts records of a topic that were handled, for the log and for the metrics.
func (g *recordLog) countHandled(t *telemetry, topic string, n int64) {
	g.counts.handled.Add(n)
	t.countHandled(topic, n)
}

// add counts an event of a record, and logs it.
func (g *recordLog) add(k recordKind, is recordExample) { g.addAt(time.Now(), &k, &is) }

// addAt is add for callers that know the time, on the path of every failed record.
func (g *recordLog) addAt(now time.Time, k *recordKind, is *recordExample) {
	// A storm keeps its latest example.
	if k.why != "" {
		is.error, k.why = cmp.Or(is.error, k.why), classify.Mask(k.why)
	}
	is.error = cut(is.error, mostError)
	if k.event.of != nil {
		k.event.of(&g.counts).Add(1)
	}
	if !g.storms.Add(now, k, is) && g.log.Enabled(context.Background(), slog.LevelDebug) {
		g.write(slog.LevelDebug, k.event.one, is.attributes(*k))
	}
}

// takeBack no longer counts a record as an event: its copy is too large for that. What becomes of
// the record instead counts by itself.
func (g *recordLog) takeBack(e *recordEvent) { e.of(&g.counts).Add(-1) }

// report writes a line about records of a kind.
func (g *recordLog) report(k recordKind, t logthrottle.Tally[recordExample]) {
	event := k.event
	switch {
	case t.Over():
		g.write(slog.LevelInfo, event.over, append(k.attributes(nil), "total", t.Total, "lasted", t.Lasted))
	case t.First():
		g.write(event.level, event.one, append(t.Last.attributes(k), event.unit, t.Events))
	default:
		g.write(event.level, event.many, append(t.Last.attributes(k), event.unit, t.Events, "total", t.Total, "lasted", t.Lasted))
	}
}

// write writes a line with a text of a recordEvent.
func (g *recordLog) write(level slog.Level, text string, about []any) {
	g.log.Log(context.Background(), level, text, about...) //nolint:sloglint // the texts are constants, in a table
}

// attributes returns the kind's attributes, with those of the place of a record behind the topic.
func (k *recordKind) attributes(place []any) []any {
	all := append(appendTexts(nil, "topic", k.topic), place...)
	if k.tier > 0 {
		all = append(all, "tier", retrytopics.FormatDelay(k.tier))
	}
	return appendTexts(all, "to", k.to, "by", k.by, "reason", k.reason, "class", k.class)
}

// attributes returns the attributes of a line about the record.
func (is *recordExample) attributes(k recordKind) []any {
	var all []any
	if k.topic != "" {
		all = []any{"partition", is.partition}
	}
	all = appendTexts(all, "feed", is.feed)
	if is.offset >= 0 {
		all = append(all, "offset", is.offset)
	}
	if is.attempts > 0 {
		all = append(all, "attempts", is.attempts)
	}
	all = append(k.attributes(all), is.about...)
	return appendTexts(all, "error", is.error)
}

// appendTexts appends the attributes whose text is not empty.
func appendTexts(all []any, pairs ...string) []any {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, pairs[i], pairs[i+1])
		}
	}
	return all
}

// countsNow are the numbers at a moment: handled, parked, dead-lettered, discarded.
type countsNow [4]int64

func (c *recordCounts) now() countsNow {
	return countsNow{c.handled.Load(), c.parked.Load(), c.deadLettered.Load(), c.discarded.Load()}
}

// attributes returns the numbers since another moment.
func (n countsNow) attributes(since countsNow) []any {
	return []any{
		"handled", n[0] - since[0], "copies_parked", n[1] - since[1], "dead_lettered", n[2] - since[2], "discarded", n[3] - since[3],
	}
}

// summarizeEvery is the interval of summarize.
const summarizeEvery = time.Minute

// summarize logs the numbers of each minute in which a record failed, until ctx ends.
func (g *recordLog) summarize(ctx context.Context) {
	t := time.NewTicker(summarizeEvery)
	defer t.Stop()
	var before countsNow
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := g.counts.now()
		for i := range now {
			// what was taken back of an earlier minute is missing from a later one
			now[i] = max(now[i], before[i])
		}
		if [3]int64(now[1:]) != [3]int64(before[1:]) {
			g.log.Info("siding: the last minute", now.attributes(before)...)
		}
		before = now
	}
}
