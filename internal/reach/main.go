// Command reach chooses the tests that run under the race detector, and writes the others to a
// list.
//
// It runs each test alone, with the cases that it has under the race detector, and notes its CPU
// time and the blocks of code that it reaches. Of code where goroutines can meet the tests that
// remain reach each block that all of them reach, of other code each function; so a test is left
// out if cheaper ones reach the same. What always remains: a test whose name names an interleaving,
// and one that is cheap. A test that the list does not name runs, a new one for example.
//
// It takes the folders of packages, and prints what it chose. Run it in the root of the checkout.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// interleaving matches the names of tests that are about the order in which goroutines meet.
var interleaving = regexp.MustCompile(`Revoke|Shutdown|ShutsDown|Permission|Fence|Tracker|Rebalanc|Race|Concurren|AtOnce|SideBySide|Beside`)

// cheap is the CPU time up to which a test remains: without it nothing is gained.
const cheap = 50 * time.Millisecond

// measured is what a test did alone.
type measured struct {
	folder, test string
	cpu          time.Duration
	blocks       []block
}

// remains reports whether a test is never left out.
func (m measured) remains() bool { return m.cpu <= cheap || interleaving.MatchString(m.test) }

func main() {
	list := flag.String("list", ".ci/left-out", "the file to write")
	flag.Parse()
	if err := run(*list, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reach:", err)
		os.Exit(1)
	}
}

func run(list string, folders []string, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "reach")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var all []measured
	for _, folder := range folders {
		of, err := measure(dir, filepath.Clean(folder), folders)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		all = append(all, of...)
	}
	of := code{root: ".", files: map[string]file{}}
	left, targets, err := choose(all, of.target)
	if err != nil {
		return err
	}
	var text strings.Builder
	var sum, saved time.Duration
	for _, m := range all {
		sum += m.cpu
	}
	for _, m := range left {
		saved += m.cpu
		fmt.Fprintln(&text, m.folder, m.test)
	}
	fmt.Fprintf(out, "%d of %d tests reach all %d targets, in %.0f of %.0f CPU s\n", len(all)-len(left), len(all), targets, (sum - saved).Seconds(), sum.Seconds())
	return os.WriteFile(list, []byte(text.String()), 0o600)
}

// choose returns the tests to leave out, by folder and name: those that are not needed to reach
// each target. Greedy: the next test reaches the most new targets for its CPU time.
func choose(all []measured, target func(block) (string, error)) (left []measured, targets int, err error) {
	reached, missing, err := targetsOf(all, target)
	if err != nil {
		return nil, 0, err
	}
	targets = len(missing)
	times := map[string]int{} // how many of the chosen reach a target
	chosen := make([]bool, len(all))
	add := func(i int) {
		chosen[i] = true
		for _, t := range reached[i] {
			delete(missing, t)
			times[t]++
		}
	}
	for i, m := range all {
		if m.remains() {
			add(i)
		}
	}
	for len(missing) > 0 {
		best, most := -1, 0.0
		for i, m := range all {
			if chosen[i] {
				continue
			}
			news := 0
			for _, t := range reached[i] {
				if missing[t] {
					news++
				}
			}
			if gain := float64(news) / m.cpu.Seconds(); gain > most {
				best, most = i, gain
			}
		}
		add(best)
	}
	for i, m := range all {
		needed := func(t string) bool { return times[t] == 1 }
		if !chosen[i] || m.remains() || slices.ContainsFunc(reached[i], needed) {
			continue
		}
		chosen[i] = false // later ones reach the same
		for _, t := range reached[i] {
			times[t]--
		}
	}
	for i, m := range all {
		if !chosen[i] {
			left = append(left, m)
		}
	}
	slices.SortFunc(left, func(a, b measured) int {
		return cmp.Or(cmp.Compare(a.folder, b.folder), cmp.Compare(a.test, b.test))
	})
	return left, targets, nil
}

// targetsOf returns the targets of each test, and of all.
func targetsOf(all []measured, target func(block) (string, error)) (reached [][]string, union map[string]bool, err error) {
	union = map[string]bool{}
	for _, m := range all {
		own := map[string]bool{}
		for _, b := range m.blocks {
			t, err := target(b)
			if err != nil {
				return nil, nil, err
			}
			own[t], union[t] = true, true
		}
		reached = append(reached, slices.Sorted(maps.Keys(own)))
	}
	return reached, union, nil
}

// started is what a process takes before its first test.
const started = 40 * time.Millisecond

// measure runs each test of a package alone. Those that are skipped are not among the measured.
func measure(dir, folder string, folders []string) (all []measured, err error) {
	binary := filepath.Join(dir, strings.ReplaceAll(folder, "/", "_")+".test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-w", "-tags", "few", "-cover", "-coverpkg", strings.Join(folders, ","), "-o", binary, "./"+folder)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		return nil, nil // no tests
	}
	names := exec.Command(binary, "-test.list", "^(Test|Fuzz|Example)")
	names.Dir = folder
	out, err := names.Output()
	if err != nil {
		return nil, err
	}
	for _, test := range strings.Fields(string(out)) {
		profile := filepath.Join(dir, "profile")
		one := exec.Command(binary, "-test.run", "^"+test+"$", "-test.v", "-test.coverprofile", profile)
		one.Dir = folder
		out, err := one.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", test, err, out)
		}
		if strings.Contains(string(out), "--- SKIP: "+test+" ") {
			continue
		}
		m := measured{folder: folder, test: test, cpu: max(one.ProcessState.UserTime()+one.ProcessState.SystemTime()-started, 0)}
		if m.blocks, err = readProfile(profile); err != nil {
			return nil, fmt.Errorf("%s: %w", test, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// readProfile reads the blocks that a coverage profile says were reached.
func readProfile(name string) (blocks []block, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text, ok := strings.CutSuffix(lines.Text(), " 0")
		if ok || strings.HasPrefix(text, "mode:") {
			continue
		}
		b, err := parseBlock(text)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}
