package suite

import "testing"

var order = map[string]func(*testing.T, *fixture){}
