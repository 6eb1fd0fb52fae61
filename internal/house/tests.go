package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// What a test may cost: CPU seconds under the race detector, and seconds of wall time anywhere,
// each when it runs alone.
const (
	mostCPU  = 10
	mostWall = 30
)

// recorded is where the make targets record the runs of tests: in the format of go test -json, and
// beside it the CPU seconds of each package. A file whose name begins with race is of a run under
// the race detector.
const recorded = ".cache/tests"

// module is the path that all modules' paths begin with; what follows is the folder of a package.
const module = "github.com/sidingkafka/siding"

// suspectCPU is the part of the ceiling from which a test is run alone under the race detector: its
// share of the CPU seconds of its package is an estimate.
const suspectCPU = 0.8

// cost is what a test took in a recorded run.
type cost struct {
	run, pkg, test string
	seconds        float64
	cpu            float64 // its share of its package's CPU seconds; 0 if they were not recorded
}

// expected is what the test may cost alone, as far as the run shows: no more than its wall time,
// and under the race detector some CPU seconds more than its share.
func (c cost) expected() float64 {
	if c.race() && c.cpu > 0 {
		return min(c.seconds, c.cpu/suspectCPU)
	}
	return c.seconds
}

func (c cost) race() bool { return strings.HasPrefix(c.run, "race") }

// most is the cost that no test exceeds. Runs that wait for brokers and browsers beside others have
// none: their times are the machine's.
func (c cost) most() float64 {
	switch {
	case c.race():
		return mostCPU
	case c.run == "test":
		return mostWall
	}
	return math.Inf(1)
}

// costs reads what the tests of all recorded runs took, the dearest first.
//
// A run has as many tests at once as there are cores, or more, so a recorded time is an upper bound
// of the time that a test takes alone. Only the times of parts count, the subtests without
// subtests: the time of a test with parallel subtests has their waits for each other. Under the
// race detector a test costs the sum of its parts, elsewhere each part is judged by itself.
func costs(dir string) (all []cost, err error) {
	files, err := filepath.Glob(filepath.Join(dir, recorded, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		of, err := costsOf(strings.TrimSuffix(filepath.Base(file), ".jsonl"), bufio.NewScanner(f))
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		cpu, err := readCPU(strings.TrimSuffix(file, ".jsonl") + ".cpu")
		if err != nil {
			return nil, err
		}
		share(of, cpu)
		all = append(all, of...)
	}
	slices.SortFunc(all, func(a, b cost) int {
		return cmp.Compare(b.expected()/min(b.most(), mostWall), a.expected()/min(a.most(), mostWall))
	})
	return all, nil
}

// readCPU reads the CPU seconds of a run by folder, which .ci/cpu wrote.
func readCPU(file string) (map[string]float64, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	cpu := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		var folder string
		var user, system float64
		if _, err := fmt.Sscan(line, &folder, &user, &system); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
		cpu[folder] += user + system
	}
	return cpu, nil
}

// share gives each test of a run the part of its package's CPU seconds that it has of the sum of
// the tests' times.
func share(of []cost, cpu map[string]float64) {
	sums := map[string]float64{}
	for _, c := range of {
		sums[c.pkg] += c.seconds
	}
	for i, c := range of {
		if sum := sums[c.pkg]; sum > 0 {
			of[i].cpu = cpu[strings.TrimPrefix(c.pkg, module+"/")] * c.seconds / sum
		}
	}
}

func costsOf(run string, lines *bufio.Scanner) (all []cost, err error) {
	type event struct {
		Action, Package, Test string
		Elapsed               float64
	}
	type key struct{ pkg, test string }
	took := map[key]float64{}
	parents := map[key]bool{}
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		if e.Test == "" || e.Action != "pass" && e.Action != "fail" {
			continue
		}
		took[key{e.Package, e.Test}] = e.Elapsed
		for i, c := range e.Test {
			if c == '/' {
				parents[key{e.Package, e.Test[:i]}] = true
			}
		}
	}
	sums := map[key]float64{}
	for k, seconds := range took {
		if parents[k] {
			continue
		}
		if strings.HasPrefix(run, "race") {
			k.test, _, _ = strings.Cut(k.test, "/")
		}
		sums[k] += seconds
	}
	for k, seconds := range sums {
		all = append(all, cost{run: run, pkg: k.pkg, test: k.test, seconds: seconds})
	}
	return all, lines.Err()
}

// alone runs a test by itself, and returns the cost that counts: CPU seconds under the race
// detector, else wall time.
func (c cost) alone(dir string, raceFlags []string) (seconds float64, err error) {
	folder, err := folderOf(dir, c.pkg)
	if err != nil {
		return 0, err
	}
	binary, err := filepath.Abs(filepath.Join(dir, recorded, strings.ReplaceAll(c.pkg, "/", "_")+"."+c.run+".test"))
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(binary); err != nil { // of the package's first test
		build := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", binary}
		if c.race() {
			build = append(append(build, "-race"), raceFlags...) // what the run has compiled
		}
		compile := exec.Command("go", append(build, ".")...)
		compile.Dir = folder
		compile.Env = append(os.Environ(), "GOWORK="+work(dir))
		if c.race() {
			compile.Env = append(compile.Env, "CGO_ENABLED=1")
		}
		if out, err := compile.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("go test -c: %w: %s", err, out)
		}
	}
	var parts []string
	for part := range strings.SplitSeq(c.test, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	run := exec.Command(binary, "-test.run", strings.Join(parts, "/"), "-test.timeout", "10m")
	run.Dir = folder
	began := time.Now()
	if out, err := run.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s alone: %w: %s", c.test, err, out)
	}
	if c.race() {
		return (run.ProcessState.UserTime() + run.ProcessState.SystemTime()).Seconds(), nil
	}
	return time.Since(began).Seconds(), nil
}

// folderOf is the folder of one of the checkout's packages.
func folderOf(dir, pkg string) (string, error) {
	list := exec.Command("go", "list", "-f", "{{.Dir}}", pkg)
	list.Dir = dir
	list.Env = append(os.Environ(), "GOWORK="+work(dir))
	out, err := list.Output()
	return strings.TrimSpace(string(out)), err
}

// dearest bounds the tests that are printed.
const dearest = 10

// tooDearTests judges the tests of all recorded runs.
func tooDearTests(dir string, raceFlags []string, debt ceilings, out io.Writer) ([]string, error) {
	all, err := costs(dir)
	if err != nil {
		return nil, err
	}
	return judgeTests(dir, raceFlags, all, debt, out)
}

// judgeTests prints the dearest tests, and returns those that cost too much also when they run
// alone, and more than debts allow.
func judgeTests(dir string, raceFlags []string, all []cost, debt ceilings, out io.Writer) (tooDear []string, err error) {
	runs, cpu := map[string]int{}, map[string]float64{}
	for _, c := range all {
		runs[c.run]++
		cpu[c.run] += c.cpu
	}
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		fmt.Fprintf(out, "%d tests or parts of the run %s, %.0f CPU s\n", runs[run], run, cpu[run])
	}
	defer func() {
		binaries, _ := filepath.Glob(filepath.Join(dir, recorded, "*.test"))
		for _, file := range binaries {
			err = errors.Join(err, os.Remove(file))
		}
	}()
	for i, c := range all {
		unit := "s"
		if c.race() {
			unit = "CPU s"
		}
		seconds, how := c.expected(), "at most"
		if seconds > c.most() {
			seconds, how = c.seconds, "alone"
			for range 2 { // the lower of two, since something else may run beside the first
				took, err := c.alone(dir, raceFlags)
				if err != nil {
					return nil, err
				}
				if seconds = min(seconds, took); seconds <= c.most() {
					break
				}
			}
			if seconds > max(c.most(), float64(debt[path.Base(c.pkg)+" "+c.test])) {
				tooDear = append(tooDear, fmt.Sprintf("%s of %s takes %.1f %s in the run %s, the ceiling is %.0f", c.test, c.pkg, seconds, unit, c.run, c.most()))
			}
		} else if i >= dearest {
			break
		}
		fmt.Fprintf(out, "%7.1f %-5s %-7s %s: %s %s\n", seconds, unit, how, c.run, c.pkg, c.test)
	}
	return tooDear, nil
}
