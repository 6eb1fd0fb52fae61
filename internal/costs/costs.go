// Package costs holds what siding's code allocates for a record under the ceilings of a table.
//
// An allocation is siding's if the innermost function outside of the standard library is, and is in
// no file of tests. So neither franz-go nor the embedded broker counts, and all runs have the same
// figures, whatever else the machine does.
package costs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// Records of a benchmark's two runs. What it takes to begin and to end is the same in both, and
// counts for nothing. The difference is a multiple of all sizes in which siding allocates for
// several records.
const (
	few  = 512
	many = few + 2560
)

// Hold fails a test if a record costs more in one of the benchmarks than the table allows. In a
// benchmark an operation is a record, and all benchmarks are of one package, which has no other
// test that calls Hold. With SIDING_UPDATE=1 it writes the rows of the package anew.
//
// It skips the test under the race detector and with coverage, which change what is allocated. The
// test must not be parallel.
func Hold(t *testing.T, benchmarks ...func(*testing.B)) {
	t.Helper()
	if race || testing.CoverMode() != "" {
		t.Skip("the race detector and coverage change what is allocated")
	}
	c := counter{t: t, ours: map[stack]bool{}}
	costs := table{}
	for _, f := range benchmarks {
		costs[nameOf(f)] = c.perRecord(f)
	}
	file := tableFile(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ceilings, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("SIDING_UPDATE") != "" {
		ceilings.replace(costs)
		if err := os.WriteFile(file, []byte(ceilings.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, cost := range costs {
		t.Logf("%s: %v", name, cost)
	}
	for _, problem := range ceilings.problems(costs) {
		t.Error(problem)
	}
}

// tableFile returns the table's file, which is in the root module.
func tableFile(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(dir, "go.work")) {
		if dir == filepath.Dir(dir) {
			t.Fatal("no folder above has a go.work")
		}
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, "internal", "costs", "ceilings.tsv")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// module is the path of the root module, and begins those of the others.
const module = "github.com/sidingkafka/siding/"

// nameOf returns the folder and the name of a benchmark.
func nameOf(f func(*testing.B)) string {
	return strings.TrimPrefix(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name(), module)
}

// counter counts the allocations of siding's code.
type counter struct {
	t    *testing.T
	ours map[stack]bool // what is known about stacks
}

type stack = [32]uintptr

// perRecord returns what an operation of a benchmark costs. One thread and no collection make the
// pools of siding and franz-go give the same in each run.
func (c *counter) perRecord(f func(*testing.B)) (each cost) {
	rate, threads, collections := runtime.MemProfileRate, runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	runtime.MemProfileRate = 1
	defer func() {
		runtime.MemProfileRate = rate
		runtime.GOMAXPROCS(threads)
		debug.SetGCPercent(collections)
	}()
	before := c.total()
	c.run(f, few)
	between := c.total()
	c.run(f, many)
	after := c.total()
	return cost{
		allocations: (after.allocations - 2*between.allocations + before.allocations) / (many - few),
		bytes:       (after.bytes - 2*between.bytes + before.bytes) / (many - few),
	}
}

// run runs a benchmark with n operations.
func (c *counter) run(f func(*testing.B), n int) {
	benchtime := flag.Lookup("test.benchtime").Value
	was := benchtime.String()
	if err := benchtime.Set(fmt.Sprintf("%dx", n)); err != nil {
		c.t.Fatal(err)
	}
	result := testing.Benchmark(f)
	if err := benchtime.Set(was); err != nil {
		c.t.Fatal(err)
	}
	if result.N != n {
		c.t.Fatalf("%s fails: run it by go test -bench", nameOf(f))
	}
}

// total returns what siding's code has allocated since the process began.
func (c *counter) total() (sum cost) {
	runtime.GC() // a profile is as of the last collection
	n, _ := runtime.MemProfile(nil, true)
	var profile []runtime.MemProfileRecord
	for ok := false; !ok; {
		profile = make([]runtime.MemProfileRecord, n+100)
		n, ok = runtime.MemProfile(profile, true)
	}
	for _, r := range profile[:n] {
		ours, known := c.ours[r.Stack0]
		if !known {
			ours = isOurs(r.Stack())
			c.ours[r.Stack0] = ours
		}
		if ours {
			sum.allocations += float64(r.AllocObjects)
			sum.bytes += float64(r.AllocBytes)
		}
	}
	return sum
}

// isOurs reports whether siding's code made the allocation at the end of a stack.
func isOurs(pcs []uintptr) bool {
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		if root, _, ok := strings.Cut(f.Function, "/"); ok && strings.Contains(root, ".") {
			in, is := strings.CutPrefix(f.Function, module)
			return is && !strings.HasPrefix(in, "internal/costs.") && !strings.HasSuffix(f.File, "_test.go")
		}
		if !more {
			return false
		}
	}
}
