package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

// A transaction of the bare program is as long as one of siding's.
const (
	bareTxnLength  = 150 * time.Millisecond
	bareTxnLetters = 20_000
)

// bareRedrive moves dead letters to a tier in transactions, by the shortest way: it reads the
// topic, makes copies by the batch, and writes them under two transactional ids in turn, so that
// one transaction is committed while the other is filled. It records nothing and checks nothing
// else.
//
// The measurement begins when the ids are initialised, before the first read, and ends when the
// last transaction is committed.
func bareRedrive(ctx context.Context, j job) (report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var m meter
	w := bareWriters{}
	defer w.close()
	for i := range w.cl {
		cl, err := kgo.NewClient(
			kgo.SeedBrokers(j.Seeds...),
			kgo.TransactionalID(j.To+strconv.Itoa(i)),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.ProducerLinger(0),
			kgo.MaxBufferedRecords(1<<20),
		)
		if err != nil {
			return report{}, err
		}
		w.cl[i] = cl
		if _, _, err := cl.ProducerID(ctx); err != nil {
			return report{}, fmt.Errorf("initialising a transactional id: %w", err)
		}
	}
	m.begin()
	if err := readAll(ctx, j, func(fetches kgo.Fetches) (failed error) {
		fetches.EachPartition(func(fp kgo.FetchTopicPartition) {
			for records := range slices.Chunk(fp.Records, 1_000) {
				if failed == nil {
					failed = w.write(ctx, bareCopies(records, j), cancel)
				}
			}
		})
		return failed
	}); err != nil {
		return report{}, err
	}
	w.commit(ctx, cancel)
	w.ends.Wait()
	if err := context.Cause(ctx); err != nil {
		return report{}, err
	}
	return m.end(j.Data.records()), nil
}

// bareWriters are two producers that take turns.
type bareWriters struct {
	cl    [2]*kgo.Client
	free  [2]sync.Mutex // held while a transaction is filled or ended
	which int
	begun time.Time // zero: no transaction is being filled
	n     int
	ends  sync.WaitGroup
}

func (w *bareWriters) close() {
	w.ends.Wait()
	for _, cl := range w.cl {
		if cl != nil {
			cl.Close()
		}
	}
}

func (w *bareWriters) write(ctx context.Context, copies []kgo.Record, cancel context.CancelCauseFunc) error {
	if w.begun.IsZero() {
		w.free[w.which].Lock()
		if err := w.cl[w.which].BeginTransaction(); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		w.begun, w.n = time.Now(), 0
	}
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			cancel(err)
		}
	}
	for i := range copies {
		w.cl[w.which].Produce(ctx, &copies[i], promise)
	}
	if w.n += len(copies); w.n >= bareTxnLetters || time.Since(w.begun) >= bareTxnLength {
		w.commit(ctx, cancel)
	}
	return ctx.Err()
}

// commit ends the transaction while the next one is filled.
func (w *bareWriters) commit(ctx context.Context, cancel context.CancelCauseFunc) {
	if w.begun.IsZero() {
		return
	}
	which := w.which
	w.begun, w.which = time.Time{}, 1-which
	w.ends.Go(func() {
		defer w.free[which].Unlock()
		if err := errors.Join(w.cl[which].Flush(ctx), w.cl[which].EndTransaction(ctx, kgo.TryCommit)); err != nil {
			cancel(fmt.Errorf("commit: %w", err))
		}
	})
}

// keeps reports whether a letter's copy has a header of it as it is.
func keeps(key string) bool {
	return key == headers.OriginalTopic || key == headers.OriginalPartition || key == headers.OriginalOffset || key == headers.Group
}

// bareCopies builds the copies of one partition's letters, with the headers
// that siding gives them: one allocation each for the records, the headers and
// the text of the fields.
func bareCopies(records []*kgo.Record, j job) []kgo.Record {
	const kept, own, field = 4, 3, 300
	var (
		slab = make([]kgo.Record, len(records))
		all  = make([]kgo.RecordHeader, 0, len(records)*(kept+own))
		text = make([]byte, 0, len(records)*(len(j.Data.Topic)+field))
		now  = strconv.AppendInt(nil, time.Now().UnixMilli(), 10)
		zero = []byte("0")
	)
	for i, r := range records {
		from := len(all)
		for _, h := range r.Headers {
			if keeps(h.Key) {
				all = append(all, h)
			}
		}
		begin := len(text)
		for _, h := range r.Headers {
			if h.Key != headers.MetaFields {
				continue
			}
			for rest := h.Value; len(rest) > 0; {
				var f reserved.Field
				if f, rest, _ = reserved.NextField(rest); f.Key != reserved.Hops && f.Key != reserved.ErrorFingerprint {
					text = append(text, f.Text...)
				}
			}
		}
		text = append(text, "hops=1;run=20260102-150405-0a1b2c;runs=1;from="...)
		text = append(text, r.Topic...)
		text = append(text, '/')
		text = strconv.AppendInt(text, int64(r.Partition), 10)
		text = append(text, '/')
		text = strconv.AppendInt(text, r.Offset, 10)
		text = append(text, ";sent="...)
		text = append(append(text, now...), ';')
		all = append(all,
			kgo.RecordHeader{Key: headers.Attempts, Value: zero},
			kgo.RecordHeader{Key: headers.NotBefore, Value: now},
			kgo.RecordHeader{Key: headers.MetaFields, Value: text[begin:len(text):len(text)]})
		slab[i] = kgo.Record{Topic: j.To, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: all[from:len(all):len(all)]}
	}
	return slab
}
