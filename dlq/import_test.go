package dlq

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/client"
)

func TestImport_WritesWhatWasExported(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, keep := range []bool{false, true} {
		runOnKafka(t, fmt.Sprint(keep), func(t *testing.T, k *kafka) {
			k.write(t, "orders.dlq", &kgo.Record{Partition: 1}, from(1)) // there before
			archive := letters()
			archive = slices.Delete(archive, 1, 2) // a record without a time gets one
			for _, r := range archive {
				r.Timestamp = time.UnixMilli(time.Now().UnixMilli() - 1)
			}
			time.Sleep(time.Hour)
			now := time.Now()
			n, err := Import(t.Context(), "orders.dlq", bytes.NewReader(export(t, archive...)), ImportOptions{KeepTimestamps: keep}, k.opts()...)
			if err != nil || n != 3 {
				t.Fatal(n, err)
			}
			got := map[string]*kgo.Record{}
			for _, l := range k.letters(t, "orders.dlq") {
				got[fmt.Sprintf("%d:%d", l.Record.Partition, l.Record.Offset)] = l.Record
			}
			for i, at := range []string{"0:0", "2:0", "2:1"} {
				r, want := got[at], archive[i]
				if r == nil {
					t.Fatalf("%s is missing", at)
				}
				if d := cmp.Diff([][]byte{want.Key, want.Value}, [][]byte{r.Key, r.Value}); d != "" {
					t.Errorf("%s: key and value: %s", at, d)
				}
				if d := cmp.Diff(want.Headers, r.Headers); d != "" {
					t.Errorf("%s: %s", at, d)
				}
				if keep != r.Timestamp.Equal(want.Timestamp) || !keep && r.Timestamp.Before(now) {
					t.Errorf("%s: timestamp %s of %s, keep %v", at, r.Timestamp, want.Timestamp, keep)
				}
			}
			if len(got) != 4 {
				t.Errorf("%d letters, want 4", len(got))
			}
		})
	}
}

// The client refuses a record of a megabyte before compression. The topic decides, and in the
// order of the lines.
func TestImport_WritesWhatTheTopicTakes(t *testing.T) {
	cases.Skip(t)
	onKafka(t, func(t *testing.T, k *kafka) {
		k.create(t, "raised.dlq", 1, "max.message.bytes", "4000000")
		random := make([]byte, 2<<20)
		rand.Read(random)
		var all []*kgo.Record
		for i, value := range [][]byte{[]byte("first"), random, []byte("third"), make([]byte, 8<<20), []byte("fifth")} {
			all = append(all, &kgo.Record{Topic: "orders.dlq", Offset: int64(i), Timestamp: time.Now(), Value: value})
		}
		file := export(t, all...)
		large := func(req kmsg.Request) bool { return len(req.AppendTo(nil)) > 1<<20 }
		// By one codec it is too large, and not by the strongest.
		k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "raised.dlq", Err: kerr.MessageTooLarge, When: large, Count: 1})
		if n, err := Import(t.Context(), "raised.dlq", bytes.NewReader(file), ImportOptions{}, k.opts()...); n != 5 || err != nil {
			t.Fatalf("%d letters, %v", n, err)
		}
		for i, l := range k.letters(t, "raised.dlq") {
			if !bytes.Equal(l.Record.Value, all[i].Value) {
				t.Errorf("letter %d has %d bytes, want %d", i, len(l.Record.Value), len(all[i].Value))
			}
		}
		_, err := Import(t.Context(), "orders.dlq", bytes.NewReader(file), ImportOptions{}, k.opts()...)
		wantError(t, err, "line 2: write it to orders.dlq/0: ")
		wantError(t, err, "the letter has 2097280 bytes before compression: raise max.message.bytes of the topic, or take the line out of the file, and import it again")
	})
}

// An import ended where no broker led a partition for some seconds.
func TestImport_WaitsWhileALeaderMoves(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 1)
		leaderless := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders.dlq", Partitions: []int32{2}, Err: kerr.LeaderNotAvailable, Count: -1})
		time.AfterFunc(client.LeaderMoves-time.Second, leaderless.Remove)
		file := export(t, letters()...)
		if n, err := Import(t.Context(), "orders.dlq", bytes.NewReader(file), ImportOptions{}, k.opts()...); err != nil || n != int64(len(letters())) {
			t.Errorf("%d letters were imported: %v", n, err)
		}
	})
}

func TestImport_WritesNothingOfABrokenFile(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		good := string(export(t, letters()[0]))
		second := strings.ReplaceAll(good, `"offset":17`, `"offset":18`)
		change := func(old, new string) string {
			if !strings.Contains(second, old) {
				t.Fatalf("there is no %s in %s", old, second)
			}
			return good + strings.Replace(second, old, new, 1)
		}
		for _, c := range []struct{ name, file, want string }{
			{"cut short", good + second[:len(second)-20], "line 2: the file is cut short"},
			{"without the last line's end", good + second[:len(second)-1], "line 2: the file is cut short"},
			{"an empty line", good + "\n" + second, "line 2: not a letter"},
			{"something else", good + "letter\n", "line 2: not a letter"},
			{"another JSON", good + "[]\n", "line 2: not a letter"},
			{"two in a line", change("\n", " {}\n"), "line 2: not a letter"},
			{"no version", change(`"v":1,`, ""), "line 2: not a letter: the version is missing"},
			{"a newer version", change(`"v":1,`, `"v":2,`), "line 2: it has version 2"},
			{"no partition", change(`"partition":0,`, ""), "line 2: not a letter: the partition is missing"},
			{"a partition below zero", change(`"partition":0,`, `"partition":-1,`), "line 2: not a letter: the partition is missing"},
			{"too few partitions", change(`"partition":0,`, `"partition":3,`), "letter orders.dlq/3/18: the topic has only 3 partitions"},
			{"no key", change(`"key":"b3JkZXItNw==",`, ""), "line 2: not a letter: one of"},
			{"no value", change(`"value":"eyJza3UiOiI8w6Q+In0=",`, ""), "line 2: not a letter: one of"},
			{"no headers", change(`"headers":`, `"other":`), "line 2: not a letter: one of"},
			{"headers that are null", good + `{"v":1,"partition":0,"timestamp":1,"key":null,"value":null,"headers":null}` + "\n", "line 2: not a letter: one of"},
			{"no timestamp", change(`"timestamp":1763000000123,`, ""), "line 2: not a letter: one of"},
			{"a header without key", change(`"key":"a",`, ""), "line 2: not a letter: header 1"},
			{"a header without value", change(`"value":"MQ=="`, `"valeu":"MQ=="`), "line 2: not a letter: header 1"},
			{"broken base64", change(`"MQ=="`, `"MQ="`), "line 2: not a letter: illegal base64"},
			{"a number for bytes", change(`"MQ=="`, `1`), "line 2: not a letter: json: cannot unmarshal number"},
		} {
			n, err := Import(t.Context(), "orders.dlq", strings.NewReader(c.file), ImportOptions{}, k.opts()...)
			if n != 0 || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nothing was written") {
				t.Errorf("%s: %d letters, error %v; want none and %q", c.name, n, err, c.want)
			}
		}
		k.wantRead(t, "orders.dlq", Filter{}, Cursor{})
		// with other ends of lines
		k.wantImported(t, "orders.dlq", strings.NewReader(strings.ReplaceAll(good+second, "\n", "\r\n")), 2)
	})
}

// pipe can't be read twice.
type pipe struct{ io.Reader }

func (pipe) Seek(int64, int) (int64, error) { return 0, errors.New("illegal seek") }

func TestImport_ThatCannotBeginSaysWhy(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		file := export(t, letters()[0])
		_, err := Import(t.Context(), "orders.dlq", pipe{bytes.NewReader(file)}, ImportOptions{}, k.opts()...)
		wantError(t, err, "save it to a file")
		_, err = Import(t.Context(), "none.dlq", bytes.NewReader(file), ImportOptions{}, k.opts()...)
		wantError(t, err, "does not exist")
		k.create(t, "short.dlq", 1, "retention.ms", "3600000")
		old := letters()[0]
		old.Timestamp = time.Now().Add(-2 * time.Hour)
		keep := ImportOptions{KeepTimestamps: true}
		if n, err := Import(t.Context(), "short.dlq", bytes.NewReader(export(t, old)), keep, k.opts()...); n != 0 || err == nil || !strings.Contains(err.Error(), "retention would delete it at once") {
			t.Errorf("too old: %d, %v", n, err)
		}
		old.Timestamp = time.Now().Add(-time.Minute)
		if n, err := Import(t.Context(), "short.dlq", bytes.NewReader(export(t, old)), keep, k.opts()...); n != 1 || err != nil {
			t.Errorf("young enough: %d, %v", n, err)
		}
	})
}
