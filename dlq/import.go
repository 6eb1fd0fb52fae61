package dlq

// Writes exported letters to a topic.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/oversize"
)

// ImportOptions are the options of an import. The zero value has the defaults.
type ImportOptions struct {
	// KeepTimestamps writes letters with their exported timestamps; the default is the time of the
	// import. Import refuses it if the topic's retention would delete a letter at once. It has no
	// effect on a topic with message.timestamp.type=LogAppendTime, which siding's own topics have.
	KeepTimestamps bool
}

// Import writes the letters of an export to a dead-letter topic, as new letters. Key, value and
// headers are the same byte for byte, and so are the partitions and the order within them. Import
// returns when all replicas in sync have the letters.
//
// A letter that is still in the topic is imported as its duplicate (see [Ledger.Letters]), and is
// resolved with it. So importing a file twice does no harm, except for letters that siding did not
// write. Use Import for letters that were pruned, expired, or come from another cluster.
//
// Import reads the file twice, and checks all of it first. It writes nothing if the file is cut
// short, or has a broken line, or a letter in a partition that the topic does not have. The error
// then names the line. A pipe cannot be read twice; save it to a file first.
//
// Import is not a transaction: a large file would not fit into one. If a write fails, the error
// names the first line that was not written, and n is how many letters were written. Letters in
// flight when ctx ended may have been written too. Written letters stay, and are open. To finish,
// import the file again: the letters that are already there become duplicates.
func Import(ctx context.Context, topic string, file io.ReadSeeker, how ImportOptions, opts ...kgo.Opt) (n int64, err error) {
	i := importer{topic: topic, file: file, how: how, opts: opts}
	n, err = i.run(ctx)
	if err != nil {
		return n, fmt.Errorf("dlq: import into %q: %w", topic, err)
	}
	return n, nil
}

type importer struct {
	topic string
	file  io.ReadSeeker
	how   ImportOptions
	opts  []kgo.Opt

	partitions int
	oldest     time.Time // retention would delete older letters at once; zero if it deletes none

	mu      sync.Mutex
	written int64
	line    int64 // the first line that was not written
	err     error // why it was not written
}

func (i *importer) run(ctx context.Context) (int64, error) {
	begin, err := i.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fmt.Errorf("the input can't be read twice, save it to a file first: %w", err)
	}
	if err := i.read(ctx); err != nil {
		return 0, err
	}
	for _, p := range exportLines(i.file, false) {
		if err := i.check(ctx, p); err != nil {
			return 0, fmt.Errorf("nothing was written: %w", err)
		}
	}
	if _, err := i.file.Seek(begin, io.SeekStart); err != nil {
		return 0, fmt.Errorf("nothing was written: %w", err)
	}
	return i.write(ctx)
}

// read reads the topic's number of partitions, and its retention if that matters.
func (i *importer) read(ctx context.Context) error {
	adm, err := client.NewAdmin(i.opts...)
	if err != nil {
		return err
	}
	defer adm.Close()
	listed, missing := client.ListOffsets(ctx, adm.ListEndOffsets, i.topic)
	ends, err := offsets(listed, missing, i.topic, math.MaxInt)
	if err != nil {
		return fmt.Errorf("list end offsets: %w", err)
	}
	i.partitions = len(ends)
	if !i.how.KeepTimestamps {
		return nil
	}
	configs, err := adm.DescribeTopicConfigs(ctx, i.topic)
	if err != nil {
		return fmt.Errorf("describe configs: %w", err)
	}
	config, err := configs.On(i.topic, nil)
	if err := errors.Join(err, config.Err); err != nil {
		return fmt.Errorf("describe configs: %w", err)
	}
	set := map[string]string{}
	for _, c := range config.Configs {
		set[c.Key] = c.MaybeValue()
	}
	retention, err := strconv.ParseInt(set["retention.ms"], 10, 64)
	if err == nil && retention >= 0 && strings.Contains(set["cleanup.policy"], "delete") && set["message.timestamp.type"] != "LogAppendTime" {
		i.oldest = time.Now().Add(-time.Duration(min(retention, int64(maxRetention/time.Millisecond))) * time.Millisecond)
	}
	return nil
}

// maxRetention caps a topic's retention, so that it does not overflow a time.Duration.
const maxRetention = 100 * 365 * 24 * time.Hour

// check returns an error if a line cannot be written.
func (i *importer) check(ctx context.Context, p parsed) error {
	switch {
	case p.err != nil:
		return p.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case int(p.record.Partition) >= i.partitions:
		return fmt.Errorf("letter %s/%d/%d: the topic has only %d partitions: add partitions to it",
			p.record.Topic, p.record.Partition, p.record.Offset, i.partitions)
	case p.record.Timestamp.Before(i.oldest):
		return fmt.Errorf("letter %s/%d/%d has the timestamp %s, and the topic's retention would delete it at once: raise the retention, or do not keep timestamps",
			p.record.Topic, p.record.Partition, p.record.Offset, p.record.Timestamp.UTC().Format(time.RFC3339))
	}
	return nil
}

func (i *importer) write(ctx context.Context) (int64, error) {
	cl, err := client.New(writeOpts(i.opts)...)
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	alone := append(writeOpts(i.opts), client.LargeBatches(), client.Strongest(), kgo.ProducerLinger(0))
	codec, err := client.NewCodec(alone...)
	if err != nil {
		return 0, err
	}
	large, err := client.New(append(alone, kgo.WithCompressor(codec))...)
	if err != nil {
		return 0, err
	}
	defer large.Close()
	most := client.MostBytes(cl, i.topic)
	var under sync.WaitGroup
	for line, p := range exportLines(i.file, false) {
		if err := i.check(ctx, p); err != nil { // the file may have changed since the first check
			i.failed(line, err)
		}
		if i.stopped() {
			break
		}
		r := &kgo.Record{Topic: i.topic, Partition: p.record.Partition, Key: p.record.Key, Value: p.record.Value, Headers: p.record.Headers}
		if i.how.KeepTimestamps {
			r.Timestamp = p.record.Timestamp
		}
		if client.Size(r) > most {
			_ = cl.Flush(ctx) // in the lines' order; each letter reports its own error
			codec.Tight.Store(false)
			again := *r
			err := large.ProduceSync(ctx, r).FirstErr()
			if oversize.Refused(err) {
				codec.Tight.Store(true)
				err = large.ProduceSync(ctx, &again).FirstErr()
			}
			i.wrote(ctx, line, r, err)
			continue
		}
		under.Add(1)
		cl.Produce(ctx, r, func(r *kgo.Record, err error) {
			defer under.Done()
			i.wrote(ctx, line, r, err)
		})
	}
	_ = cl.Flush(ctx)
	cl.Close()
	under.Wait()
	if i.err != nil {
		return i.written, fmt.Errorf("%d letters were written, then: %w", i.written, i.err)
	}
	return i.written, nil
}

// wrote counts the letter of a line, or keeps why it was not written.
func (i *importer) wrote(ctx context.Context, line int64, r *kgo.Record, err error) {
	if err != nil {
		i.failed(line, fmt.Errorf("line %d: write it to %s/%d: %w", line, r.Topic, r.Partition, tooLarge(r, ended(ctx, err))))
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.written++
}

// tooLarge says what to do if a letter is too large for the topic.
func tooLarge(r *kgo.Record, err error) error {
	if !oversize.Refused(err) {
		return err
	}
	return fmt.Errorf("%w: the letter has %d bytes before compression: raise max.message.bytes of the topic, or take the line out of the file, and import it again", err, client.Size(r))
}

// failed keeps the error of the first line that was not written.
func (i *importer) failed(line int64, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil || line < i.line {
		i.line, i.err = line, err
	}
}

func (i *importer) stopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err != nil
}
