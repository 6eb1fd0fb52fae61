package suite

import "testing"

var rebalance = map[string]func(*testing.T, *fixture){}
