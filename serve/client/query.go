package client

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
)

// query returns a filter as parameters of an address.
func query(f *api.Filter) url.Values {
	q := url.Values{}
	v := reflect.ValueOf(f).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("query"), ",")
		switch is := v.Field(i).Interface().(type) {
		case []string:
			q[name] = is
		case []int32:
			for _, n := range is {
				q.Add(name, fmt.Sprint(n))
			}
		case time.Time:
			if !is.IsZero() {
				q.Set(name, is.Format(time.RFC3339Nano))
			}
		case string:
			if is != "" {
				q.Set(name, is)
			}
		}
	}
	return q
}
