package console

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// visit is a request for a page, by a sender who is known.
type visit struct {
	*http.Request
	who   *access.Identity
	query url.Values // without the keys of streams
	base  string     // see baseOf
	now   time.Time
}

// does reports whether a form asks to do something, and not only to show what that would be.
func (r *visit) does() bool { return r.Method == http.MethodPost && r.query.Get("do") == "begin" }

// baseOf returns the path below which the console is mounted, as in /admin; empty at the root. That
// is what a handler around the console has cut off, as [http.StripPrefix] does.
func baseOf(r *http.Request) string {
	whole, _, _ := strings.Cut(r.RequestURI, "?")
	base, ok := strings.CutSuffix(whole, r.URL.EscapedPath())
	if !ok || !strings.HasPrefix(base, "/") || strings.HasPrefix(base, "//") || strings.ContainsAny(base, `\"'<>`) {
		return ""
	}
	return strings.TrimSuffix(base, "/")
}

// roleOn returns the role that the sender of a request has on a topic.
func roleOn(d *operate.Desk, r *visit, topic string) (access.Role, error) {
	if role, ok := operate.Roles(d, r.who)[topic]; ok {
		return role, nil
	}
	// A server that has just started may know it soon.
	t, err := operate.ViewTopic(r.Context(), d, r.who, topic)
	if err == nil {
		return t.Role, nil
	}
	if known, ok := errors.AsType[withStatus](err); ok && known.GetStatus() != http.StatusNotFound {
		return access.None, err
	}
	return access.None, &pageError{http.StatusNotFound, fmt.Sprintf("There is no dead-letter topic %q that %s may see.", topic, r.who.Name)}
}

// placeIn returns the place of the letter that an address names.
func placeIn(r *visit) (partition int32, offset int64, err error) {
	p, err1 := strconv.ParseInt(r.PathValue("partition"), 10, 32)
	offset, err2 := strconv.ParseInt(r.PathValue("offset"), 10, 64)
	if err1 != nil || err2 != nil || p < 0 || offset < 0 {
		return 0, 0, badInput("%s/%s is no letter: a partition and an offset are numbers from 0 on", r.PathValue("partition"), r.PathValue("offset"))
	}
	return int32(p), offset, nil
}

// versionOf returns a number that is another when one of some topics changes.
func versionOf(d *operate.Desk, topics []string) func() uint64 {
	return func() (n uint64) {
		for _, name := range topics {
			n += operate.Version(d, name)
		}
		return n
	}
}

// topicsOf returns the names of the topics on which the sender of a request has a role.
func topicsOf(d *operate.Desk, r *visit) []string {
	return slices.Sorted(maps.Keys(operate.Roles(d, r.who)))
}
