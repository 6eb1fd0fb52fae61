package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ceilings bound measures, so that the house does not decay. They only fall: -lower sets each to
// the measure of today. A measure that has to exceed its ceiling stands in debt.md, with the reason
// and the day by which it is paid.
type ceilings map[string]int

const (
	ceilingsFile = "internal/house/ceilings.tsv"
	debtFile     = "internal/house/debt.md"
)

// Where a package has no line in the file, since it is new or small, these hold.
var ofAnyPackage = map[string]int{
	cycleLines:     300,
	mostMethods:    30,
	upward:         4,
	severalHomes:   0,
	filesOfMethods: 4,
	fileLines:      400,
	functionLines:  60,
}

// readCeilings reads the ceilings of a checkout.
func readCeilings(dir string) (ceilings, error) {
	text, err := os.ReadFile(filepath.Join(dir, ceilingsFile))
	if err != nil {
		return nil, err
	}
	return parseCeilings(string(text))
}

func parseCeilings(text string) (ceilings, error) {
	c := ceilings{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "\t")
		n, err := strconv.Atoi(value)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s: %q is no measure, a tab and a number", ceilingsFile, line)
		}
		c[name] = n
	}
	return c, nil
}

// of returns the ceiling of a measure.
func (c ceilings) of(name string) (ceiling int, ok bool) {
	if ceiling, ok = c[name]; ok {
		return ceiling, true
	}
	for suffix, ceiling := range ofAnyPackage {
		if strings.HasSuffix(name, " "+suffix) && isOfPackage(name) {
			return ceiling, true
		}
	}
	return 0, false
}

// lowered returns the ceilings at the measures of today: those that have one and those of packages
// that exceed what holds for any. None is higher than before.
func (c ceilings) lowered(got measures) ceilings {
	low := ceilings{}
	for name, value := range got {
		before, named := c[name]
		ceiling, ok := c.of(name)
		switch {
		case named:
			low[name] = min(before, value)
			if general, ok := (ceilings{}).of(name); ok && low[name] <= general {
				delete(low, name)
			}
		case ok && value > ceiling:
			low[name] = value // measured for the first time
		}
	}
	return low
}

func (c ceilings) String() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&text, "%s\t%d\n", name, c[name])
	}
	return text.String()
}

// raised returns the ceilings that are above what an earlier commit had. Without git, or with its
// last commit only, there are none.
func raised(dir string, now ceilings) (names []string) {
	git := exec.Command("git", "log", "-p", "--format=", "--", ceilingsFile)
	git.Dir = dir
	history, err := git.Output()
	if err != nil {
		return nil
	}
	least := ceilings{}
	for line := range strings.Lines(string(history)) {
		name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimLeft(line, "+-")), "\t")
		n, err := strconv.Atoi(value)
		if !ok || err != nil {
			continue
		}
		if before, ok := least[name]; !ok || n < before {
			least[name] = n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if before, ok := least[name]; ok && now[name] > before {
			names = append(names, fmt.Sprintf("%s: %d, an earlier commit had %d", name, now[name], before))
		}
	}
	return names
}

// readDebt reads the measures that may exceed their ceilings for a while: rows of a table with the
// measure, up to where, the reason, and the day by which it is paid.
func readDebt(dir string) (ceilings, error) {
	text, err := os.ReadFile(filepath.Join(dir, debtFile))
	if err != nil {
		return nil, err
	}
	debt := ceilings{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 2 || strings.HasPrefix(line, "|--") || strings.TrimSpace(cells[0]) == "measure" {
			continue
		}
		if len(cells) != 4 || strings.TrimSpace(cells[2]) == "" {
			return nil, fmt.Errorf("%s: a row has a measure, a number, a reason and a day: %s", debtFile, line)
		}
		n, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no number", debtFile, cells[1])
		}
		if _, err := time.Parse(time.DateOnly, strings.TrimSpace(cells[3])); err != nil {
			return nil, fmt.Errorf("%s: %w", debtFile, err)
		}
		debt[strings.TrimSpace(cells[0])] = n
	}
	return debt, nil
}
