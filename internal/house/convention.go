package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// free are folders whose tests are about the whole, not about a file beside them.
var free = []string{"integration", "examples", "internal/deptest", "internal/charts/hosted", "internal/suite", "classify/internal/drivers", "serve/internal/browser", "serve/internal/storage"}

// storied are names of test files that need no code file: helpers of several tests, the runnable
// examples, the suite that runs on every broker.
var storied = []string{"helpers", "example", "main", "suite"}

const (
	longComments = "comment lines over 100 columns"
	strayFiles   = "test files named after no code file"
	strayTests   = "tests named after nothing that their package declares"
)

// conventions lists the comments that are too long, and the test files and the tests whose names do
// not say what they are about.
func conventions(files []*file) map[string][]string {
	broken := map[string][]string{longComments: {}, strayFiles: {}, strayTests: {}}
	folders := map[string][]*file{}
	for _, f := range files {
		for _, line := range f.longComments {
			broken[longComments] = append(broken[longComments], fmt.Sprintf("%s:%d", f.path, line))
		}
		folders[path.Dir(f.path)] = append(folders[path.Dir(f.path)], f)
	}
	for dir, inside := range folders {
		if slices.ContainsFunc(free, func(f string) bool { return dir == f || strings.HasPrefix(dir, f+"/") }) {
			continue
		}
		subjects := map[string]bool{}
		var code []string
		for _, f := range inside {
			if f.test {
				continue
			}
			base := strings.TrimSuffix(path.Base(f.path), ".go")
			code = append(code, base)
			subjects[plain(base)] = true
			for _, d := range f.decls {
				subjects[plain(d)] = true
			}
		}
		for _, f := range inside {
			if !f.test {
				continue
			}
			base := strings.TrimSuffix(path.Base(f.path), "_test.go")
			named := func(c string) bool { return base == c || strings.HasPrefix(base, c+"_") }
			if !slices.ContainsFunc(slices.Concat(code, storied), named) {
				broken[strayFiles] = append(broken[strayFiles], f.path)
			}
			for _, test := range f.tests { // Test<Subject>_<Promise>
				_, rest, _ := strings.Cut(test, kind(test))
				subject, _, _ := strings.Cut(rest, "_")
				if !subjects[plain(subject)] {
					broken[strayTests] = append(broken[strayTests], f.path+": "+test)
				}
			}
		}
	}
	return broken
}

// plain makes names of files, types and tests comparable.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// kind is the prefix by which go test finds a function.
func kind(test string) string {
	for _, k := range kinds {
		if strings.HasPrefix(test, k) {
			return k
		}
	}
	return ""
}
