package redrive

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// A connection that carries so many bytes a second, over a distance, fills transactions until their
// bytes take about what they may.
func TestLoad_FollowsWhatTheConnectionCarries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLoad(32 << 20)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			speed := rapid.Int64Range(100_000, 400_000_000).Draw(t, "bytes a second")
			far := time.Duration(rapid.IntRange(0, 500).Draw(t, "distance")) * time.Millisecond
			size := rapid.IntRange(entryBytes, 50_000).Draw(t, "size")
			took := time.Duration(0)
			for range 40 {
				tx := &transaction{}
				for o := (&outgoing{size: size}); l.fits(tx, o); {
					tx.copies = append(tx.copies, o)
					tx.held += int64(size)
					tx.bytes = tx.held
				}
				tx.full = true
				took = time.Duration(tx.bytes) * time.Second / time.Duration(speed)
				tx.sending, tx.reporting = far+took, far
				l.accepted(tx)
			}
			one := time.Duration(size) * time.Second / time.Duration(speed)
			bound := int64(txnLetters * size)
			if full := min(l.bytes, bound) >= min(l.max, bound); took > max(loadAim, one, loadLeast*time.Second/time.Duration(speed)) || took < loadAim/4 && took+one < loadAim/4 && !full {
				t.Fatalf("at %d bytes a second the letters of a transaction take %v, with a bound of %d bytes", speed, took, l.bytes)
			}
		}
	})
}

// After a timeout transactions have fewer bytes; a single letter gets more time.
func TestLoad_WhatExpiresTakesLessOrHasLonger(t *testing.T) {
	t.Parallel()
	l := newLoad(32 << 20)
	l.bytes = 20 << 20
	late := time.Now().Add(-time.Hour)
	for i, want := range []int64{1 << 20, 1 << 19, 1 << 18} {
		err := l.overdue(late, 100, l.bytes, fmt.Errorf("no"))
		if l.bytes != want || l.timeout != txn.Timeout || err.Error() == "no" {
			t.Errorf("after %d it has %d bytes and %v: %v", i+1, l.bytes, l.timeout, err)
		}
	}
	for _, want := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		if _ = l.overdue(late, 1, 900_000, fmt.Errorf("no")); l.timeout != want {
			t.Errorf("one letter has %v, want %v", l.timeout, want)
		}
	}
	was := *l
	if err := l.overdue(time.Now(), 1, 0, fmt.Errorf("no")); err.Error() != "no" || *l != was {
		t.Errorf("what failed at once is taken for what expired: %v, %+v", err, l)
	}
}
