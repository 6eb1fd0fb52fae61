package redrive_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// An edit may contain personal data. It stayed in the record of a run long after the run was over.
func TestEdit_GoesFromTheLedgerAsItsRunEnds(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	const secret = "jane.doe@example.org"
	edits := map[string]redrive.Edit{
		"headers": {Set: []kgo.RecordHeader{{Key: "mail", Value: []byte(secret)}}, Unset: []string{"trace"}},
		"patch":   {Patch: []byte(`{"mail":"` + secret + `"}`)},
		"value":   {Value: []byte(secret)},
	}
	endings := map[string]func(t *testing.T, r *redrive.Redriver, id string){
		"done": func(t *testing.T, r *redrive.Redriver, id string) {
			if o, err := r.Resume(t.Context(), "orders.dlq", id, ann(redrive.Pace{}, nil)); err != nil || o.State != redrive.Done {
				t.Errorf("the run ended with %v, and %+v", err, o)
			}
		},
		"aborted by itself": func(t *testing.T, r *redrive.Redriver, id string) {
			o, err := r.Resume(t.Context(), "orders.dlq", id, ann(redrive.Pace{}, nil))
			abortedAgain(t, o, err, "")
		},
		"aborted by hand": func(t *testing.T, r *redrive.Redriver, id string) {
			if err := r.Abort(t.Context(), "orders.dlq", id, byAnn); err != nil {
				t.Error(err)
			}
		},
	}
	for what, edit := range edits {
		for how, end := range endings {
			virtual(t, what+", "+how, func(t *testing.T, k *consumertest.Kafka) {
				held := make(chan struct{})
				s := letters(t, k, 1, nil)
				s.set(func(ctx context.Context, rec *kgo.Record) error {
					<-held
					return s.handle(ctx, rec)
				})
				r := redriverOf(t, redrive.Config{Kafka: k.Opts()})
				p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Edit: edit})
				stopped(t, r, p, redrive.Pace{}, 1)
				has := func() bool {
					text := string(readLedger(t, k).Runs()[p.ID])
					for _, v := range [][]byte{edit.Patch, edit.Value, []byte(secret)} {
						if len(v) > 0 && (strings.Contains(text, string(v)) || strings.Contains(text, base64.StdEncoding.EncodeToString(v))) {
							return true
						}
					}
					return false
				}
				if !has() {
					t.Error("a run that is unfinished does not know its edit")
				}
				s.set(succeeding)
				if how == "aborted by itself" {
					s.set(failing("tax"))
				}
				close(held)
				end(t, r, p.ID)
				if has() {
					t.Errorf("the run is over, and the ledger says of it %s", readLedger(t, k).Runs()[p.ID])
				}
			})
		}
	}
}

// A patch meets values that its author did not see. Either it cannot be applied, or the copy has a
// JSON object; to apply it again changes nothing (RFC 7396), and the letter itself stays as it is.
func FuzzEdit_IsAppliedOrRefused(f *testing.F) {
	f.Add([]byte(`{"customer":{"card":"4111"},"items":[{"n":1e400}]}`), []byte(`{"customer":{"card":null},"new":{"a":[null]}}`), "trace", []byte("1"))
	f.Add([]byte(`{"a":1,"a":2}`), []byte(`{"a":{"a":{}}}`), "", []byte(nil))
	f.Add([]byte("\xef\xbb\xbf{}"), []byte(`null`), "dlq-attempts", []byte{0xff})
	f.Fuzz(func(t *testing.T, value, patch []byte, key string, set []byte) {
		e := redrive.Edit{Patch: patch, Set: []kgo.RecordHeader{{Key: key, Value: set}}, Unset: []string{"gone"}}
		h := []kgo.RecordHeader{{Key: "gone"}, {Key: key, Value: []byte("old")}, {Key: "user"}, {Key: key, Value: []byte("older")}}
		before, was := slices.Clone(h), bytes.Clone(value)
		got, edited, err := e.Apply(h, value)
		if !cmp.Equal(h, before) || !bytes.Equal(value, was) {
			t.Fatal("the letter was changed")
		}
		if err != nil {
			_ = err.Error()
			return
		}
		var object map[string]json.RawMessage
		if patch != nil && (json.Unmarshal(edited, &object) != nil || object == nil) {
			t.Errorf("%q with %q is %q", value, patch, edited)
		}
		for _, of := range got {
			if of.Key == "gone" && key != "gone" || of.Key == key && !bytes.Equal(of.Value, set) {
				t.Errorf("the headers are %v", got)
			}
		}
		more, twice, err := e.Apply(got, edited)
		if err != nil || !bytes.Equal(twice, edited) || !cmp.Equal(more, got) {
			t.Errorf("%q with %q is %q, and again %q, %v, %v", value, patch, edited, twice, more, err)
		}
	})
}
