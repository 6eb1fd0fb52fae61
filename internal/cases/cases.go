// Package cases says how many of its cases and seeds a test runs.
//
// A run without the race detector has all of them, but for combinations of three tables or more:
// each value of a table meets each value of another one, and few meet in all the ways there are.
//
// The race detector makes a test several times as expensive, and finds a race by the code that two
// goroutines run, not by the values that they run it with. So under it a test has two seeds, and
// one case or as many as each value of each table needs to occur once.
//
// The build tag full has all of them, under the race detector too.
package cases

import (
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Pair is a case of two tables.
type Pair[A, B any] struct {
	A A
	B B
}

// Cross combines each case of one table with each of another. Names of combined cases have a slash
// in between. A table that is a combination itself gives so many that each of its cases occurs, and
// each value of its tables beside each of the other table; with the tag full, all. With [Few] each
// case of each table occurs.
func Cross[A, B any](as map[string]A, bs map[string]B) map[string]Pair[A, B] {
	all := map[string]Pair[A, B]{}
	namesA, namesB := slices.Sorted(maps.Keys(as)), slices.Sorted(maps.Keys(bs))
	if len(namesA) == 0 || len(namesB) == 0 {
		return all
	}
	add := func(i, j int) {
		a, b := namesA[i%len(namesA)], namesB[j%len(namesB)]
		all[a+"/"+b] = Pair[A, B]{as[a], bs[b]}
	}
	if Few {
		for i := range max(len(namesA), len(namesB)) {
			add(i, i)
		}
		return all
	}
	met := map[string]bool{}
	for turn := range namesB { // along diagonals, so that few combinations have all pairs
		for i, a := range namesA {
			if meets(met, a, namesB[(i+turn)%len(namesB)]) || Full {
				add(i, i+turn)
			}
		}
	}
	return all
}

// meets reports whether two cases have not occurred, or values of theirs have not met, and notes
// that they have.
func meets(met map[string]bool, a, b string) (isNew bool) {
	note := func(what ...any) {
		key := fmt.Sprint(what...)
		isNew = isNew || !met[key]
		met[key] = true
	}
	note("first ", a)
	note("second ", b)
	for i, x := range strings.Split(a, "/") {
		for j, y := range strings.Split(b, "/") {
			note(i, x, "/", j, y)
		}
	}
	return isNew
}

// Some returns a table, or with [Few] the cases of it that are named.
func Some[C any](all map[string]C, few ...string) map[string]C {
	if !Few {
		return all
	}
	some := map[string]C{}
	for _, name := range few {
		c, ok := all[name]
		if !ok {
			panic("cases: the table has no " + name)
		}
		some[name] = c
	}
	return some
}

// One returns a table, or with [Few] one case of it. The name of the test decides which one, so
// that tests of one table have different cases.
func One[C any](test string, all map[string]C) map[string]C {
	if !Few || len(all) == 0 {
		return all
	}
	names, h := slices.Sorted(maps.Keys(all)), fnv.New32a()
	_, _ = h.Write([]byte(test))
	name := names[h.Sum32()%uint32(len(names))]
	return map[string]C{name: all[name]}
}

// Skip skips a test with [Few]: its goroutines run the code that those of other tests run.
func Skip(t testing.TB) {
	t.Helper()
	if Few {
		t.Skip("other tests have the goroutines of this one")
	}
}

// Alone skips a test with [Few]: what it tests runs in the one goroutine of the test.
func Alone(t testing.TB) {
	t.Helper()
	if Few {
		t.Skip("no goroutine meets another one here")
	}
}

// Seeds returns the seeds of a test with random input: 0 up to all, or two of them with [Few]. The
// variable SIDING_SEEDS sets their number, SIDING_SEED plays one again. It panics if one of them is
// no number.
func Seeds(all uint64) []uint64 {
	if Few {
		all = min(all, 2)
	}
	if one, ok := number("SIDING_SEED"); ok {
		return []uint64{one}
	}
	if n, ok := number("SIDING_SEEDS"); ok {
		all = n
	}
	seeds := make([]uint64, all)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	return seeds
}

func number(variable string) (n uint64, ok bool) {
	text, ok := os.LookupEnv(variable)
	if !ok || text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		panic(fmt.Sprintf("%s=%s is no number of seeds", variable, text))
	}
	return n, true
}
