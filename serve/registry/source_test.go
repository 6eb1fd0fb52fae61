package registry

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/payload"
)

// A registry may claim that schemas refer to themselves, to ever more others, or to large ones.
func TestSource_BoundsReferences(t *testing.T) {
	t.Parallel()
	schema := func(size int, refs ...string) string {
		var all []string
		for _, r := range refs {
			all = append(all, fmt.Sprintf(`{"name":%q,"subject":%[1]q,"version":1}`, r))
		}
		return fmt.Sprintf(`{"schema":"\"string\"%s","references":[%s]}`, strings.Repeat(" ", size), strings.Join(all, ","))
	}
	var many []string
	for i := range mostReferences + 1 {
		many = append(many, fmt.Sprint("s", i))
	}
	for name, c := range map[string]struct {
		want string
		of   func(path string) string
	}{
		"itself":  {"lead back to version 1 of a", func(string) string { return schema(0, "a") }},
		"endless": {"lead from one to the next more than 32 times", func(path string) string { return schema(0, path+"x") }},
		"many": {"refers to more than 200 others", func(path string) string {
			if strings.HasPrefix(path, "/schemas/") {
				return schema(0, many...)
			}
			return schema(0)
		}},
		"large": {"it has more than 4194304 bytes", func(path string) string {
			if strings.HasPrefix(path, "/schemas/") {
				return schema(0, many[:100]...)
			}
			return schema(500_000)
		}},
		"kind": {"version 1 of a, which it refers to: it is of the type JSON, and not AVRO", func(path string) string {
			if strings.HasPrefix(path, "/schemas/") {
				return schema(0, "a")
			}
			return `{"schema":"{}","schemaType":"JSON"}`
		}},
		"gone": {"version 1 of a, which it refers to: the registry's answer has no schema", func(path string) string {
			if strings.HasPrefix(path, "/schemas/") {
				return schema(0, "a")
			}
			return `{}`
		}},
	} {
		url, asked := server(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, c.of(r.URL.Path)) })
		r := open(t, payload.Registry{URL: url})
		if got := read(t, r, value(framed(1, 0))); !strings.Contains(got, c.want) || strings.Contains(got, "\n") || asked.Load() > mostReferences+1 {
			t.Errorf("%s: %q after %d requests, want %q", name, got, asked.Load(), c.want)
		}
	}
}

// Ten schemas refer to one, and are read at once: it is asked for once.
func TestSource_AsksForAReferenceOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	paths := map[string]int{}
	url, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths[r.URL.Path]++
		mu.Unlock()
		if strings.Contains(r.URL.Path, "/subjects/") {
			_, _ = io.WriteString(w, `{"subject":"e","version":2,"id":77,"schema":"{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"]}"}`)
			return
		}
		_, _ = io.WriteString(w, `{"schema":"\"E\"","references":[{"name":"E","subject":"e","version":2}]}`)
	})
	r := open(t, payload.Registry{URL: url + "/below"})
	var all sync.WaitGroup
	for range 5 {
		for id := range uint32(10) {
			all.Go(func() {
				if got := read(t, r, value(framed(id+1, 0))); got != `"A"` {
					t.Error(got)
				}
			})
		}
	}
	all.Wait()
	for path, n := range paths {
		if n != 1 || !strings.HasPrefix(path, "/below/") {
			t.Errorf("%s was asked for %d times", path, n)
		}
	}
	if len(paths) != 11 {
		t.Errorf("asked for were %v", paths)
	}
	r.later(time.Hour)
	_ = read(t, r, value(framed(1, 0)))
	if len(paths) != 11 || paths["/below/schemas/ids/1"] != 1 {
		t.Errorf("a schema that was read is asked for again: %v", paths)
	}
}
