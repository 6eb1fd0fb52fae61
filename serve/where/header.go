package where

import "strings"

// ParseHeaders reads headers that a letter must have: name=value, or name for any value. It returns
// the values of each name, as dlq.Filter has them; a name without values may have any.
func ParseHeaders(all []string) map[string][]string {
	values := map[string][]string{}
	for _, h := range all {
		name, value, exact := strings.Cut(h, "=")
		if exact {
			values[name] = append(values[name], value)
		} else if _, named := values[name]; !named {
			values[name] = nil
		}
	}
	return values
}
