package classify

import (
	"strings"
	"testing"
)

func TestPlace_IsFunctionAndLine(t *testing.T) {
	t.Parallel()
	for stack, want := range map[string]string{
		"":               "",
		"billing.Charge": "",
		"java.lang.Exception: no\n\tat a.B(B.java:7)":                          "a.B, B.java:7",
		"main.f(0x1)\n\t/src/main.go:12 +0x1d\nmain.g()\n\t/src/g.go:1\n":      "main.f, main.go:12",
		"github.com/acme/billing.(*Fx).Charge(...)\n\t/app/fx.go:118\n":        "billing.(*Fx).Charge, fx.go:118",
		"github.com/acme/billing.Charge[...](0x1)\n\tC:/app/fx.go:118 +0x1d\n": "billing.Charge[...], fx.go:118",
		"a.f\x1b[2J()\n\t/x.go:1\n":                                            "",
		"a.f()\n\t/x\xff.go:1\n":                                               "",
		strings.Repeat("f", 300) + "()\n\t/x.go:1\n":                           "",
	} {
		if got := Place(stack); got != want {
			t.Errorf("Place(%q) = %q, want %q", stack, got, want)
		}
	}
	got := new(Classifier).Classify(recovered(func() { explode(1) }))
	if place := Place(got.Stack); !strings.HasPrefix(place, "classify.explode, stack_test.go:") {
		t.Errorf("a panic is at %q", place)
	}
}
