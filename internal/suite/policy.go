package suite

import "testing"

var policy = map[string]func(*testing.T, *fixture){}
