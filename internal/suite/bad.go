package suite

import "testing"

var bad = map[string]func(*testing.T, *fixture){}
