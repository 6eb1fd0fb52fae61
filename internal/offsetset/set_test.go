package offsetset

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

func TestSet_AgreesWithAMap(t *testing.T) {
	t.Parallel()
	for name, pick := range map[string]func(*rand.Rand) int64{
		"few in one block":  func(r *rand.Rand) int64 { return r.Int64N(1000) },
		"lists and bitmaps": func(r *rand.Rand) int64 { return r.Int64N(3 * blockSize / 8) },
		"far apart":         func(r *rand.Rand) int64 { return r.Int64() },
		"at the edges":      func(r *rand.Rand) int64 { return r.Int64N(8)*blockSize - r.Int64N(2) + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			var s Set
			want := map[int64]bool{}
			for range 40_000 {
				switch offset := pick(r); {
				case r.IntN(4) == 0:
					if got := s.Remove(offset); got != want[offset] {
						t.Fatalf("Remove(%d) = %v", offset, got)
					}
					delete(want, offset)
				default:
					if got := s.Add(offset); got == want[offset] {
						t.Fatalf("Add(%d) = %v", offset, got)
					}
					want[offset] = true
				}
				if probe := pick(r); s.Has(probe) != want[probe] {
					t.Fatalf("Has(%d) = %v", probe, s.Has(probe))
				}
			}
			var sorted []int64
			for offset := range want {
				sorted = append(sorted, offset)
			}
			slices.Sort(sorted)
			if got := slices.Collect(s.All()); !slices.Equal(got, sorted) || s.Len() != len(sorted) {
				t.Fatalf("the set has %d offsets and says %d, want %d", len(got), s.Len(), len(sorted))
			}
			var again Set
			if err := again.Parse(Append(nil, s.All())); err != nil {
				t.Fatal(err)
			}
			if got := slices.Collect(again.All()); !slices.Equal(got, sorted) {
				t.Error("a set that was written and read is another one")
			}
		})
	}
}

// The reader of a dead-letter topic with millions of letters relies on two bytes an offset.
func TestSet_OffsetTakesTwoBytes(t *testing.T) {
	const n = 2_000_000
	for name, every := range map[string]int64{"one in a hundred": 100, "all": 1, "one in seventeen": 17} {
		t.Run(name, func(t *testing.T) { // not parallel: it measures the heap
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var s Set
			for i := range int64(n) {
				s.Add(i * every)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if got := float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / n; got > 2.3 {
				t.Errorf("an offset takes %.2f bytes", got)
			}
			runtime.KeepAlive(&s)
		})
	}
}

// Offsets move from set to set: a million redriven letters have succeeded some time later.
func TestSet_EmptiedOneTakesNothing(t *testing.T) {
	t.Parallel()
	for _, every := range []int64{1, 17, 100, 1 << 20} {
		var s Set
		for _, change := range []func(int64) bool{s.Add, s.Remove, s.Add, s.Remove} {
			for i := range int64(100_000) {
				if !change(i * every) {
					t.Fatalf("%d was there, or not", i*every)
				}
			}
		}
		if s.Len() != 0 || len(s.blocks) != 0 {
			t.Errorf("every %d: %d offsets, %d blocks", every, s.Len(), len(s.blocks))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0x80, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Set
		if s.Parse(b) != nil {
			return
		}
		last := int64(-1)
		for offset := range s.All() {
			if offset <= last {
				t.Fatalf("%d comes behind %d", offset, last)
			}
			last = offset
		}
	})
}
