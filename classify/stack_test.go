package classify

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// recovered runs f as a consumer runs a handler.
func recovered(f func()) (err *PanicError) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

//go:noinline
func indexOutOfRange(s []int) int {
	return s[len(s)+5]
}

//go:noinline
func explode(n int) {
	if n < 0 {
		panic(fmt.Sprintf("record %d", n))
	}
	panic(fmt.Sprintf("record %d", n))
}

//go:noinline
func panicsWhileUnwinding() {
	defer explode(1)
	panic("first")
}

//go:noinline
func panicsWithError() { panic(&skuError{1}) }

func TestStack_StartsWhereItPanicked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		f     func()
		class string
		frame string
	}{
		{"explicit", func() { explode(1) }, "panic.string", ".explode"},
		{"runtime", func() { indexOutOfRange(nil) }, "panic.runtime.boundsError", ".indexOutOfRange"},
		{"nil dereference", func() { _ = (*skuError)(nil).Error() }, "panic.runtime.errorString", ".(*skuError).Error"},
		{"again while unwinding", panicsWhileUnwinding, "panic.string", ".explode"},
		{"error", panicsWithError, "panic.classify.skuError", ".panicsWithError"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := new(Classifier).Classify(fmt.Errorf("handler: %w", recovered(tt.f)))
			if got.Verdict != VerdictTerminal || got.Default || got.Class != tt.class {
				t.Errorf("got %v (default %v) %q, want terminal %q", got.Verdict, got.Default, got.Class, tt.class)
			}
			const pkg = "github.com/sidingkafka/siding/classify"
			if frame := topFrame(got.Stack); frame != pkg+tt.frame {
				t.Errorf("top frame %q, want %q in\n%s", frame, pkg+tt.frame, got.Stack)
			}
			if !strings.Contains(got.Stack, "stack_test.go:") {
				t.Errorf("the stack has no positions:\n%s", got.Stack)
			}
		})
	}
}

func TestStack_HasWholeFramesWithinItsLimit(t *testing.T) {
	t.Parallel()
	frame := "main.f(0x1)\n\t/src/main.go:12 +0x1d\n"
	for _, tt := range []struct{ name, in, want string }{
		{"none", "", ""},
		{"no panic", "goroutine 7 [running]:\n" + frame, frame},
		{"panic at the end", "goroutine 7 [running]:\npanic({0x1, 0x2})\n", ""},
		{"garbage", "no stack", "no stack"},
		{"one endless line", strings.Repeat("x", MaxStack+1), ""},
		{"many frames", strings.Repeat(frame, 500), strings.Repeat(frame, MaxStack/len(frame))},
		{"exactly full", strings.Repeat("x", MaxStack), strings.Repeat("x", MaxStack)},
		{"runtime frames", "panic({0x1})\n\t/panic.go:1\nruntime.panicmem(...)\n\t/x.go:1\nruntime.sigpanic()\n\t/y.go:2\n" + frame, frame},
	} {
		if got := string(panicFrames([]byte(tt.in))); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestStack_TopFrame(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                             "",
		"main.f(0x1, {0x2, 0x3})\n\tx": "main.f",
		"main.(*T).Do(...)\n\tx":       "main.(*T).Do",
		"main.(*T).Do.func1()\n":       "main.(*T).Do.func1",
		"main.F[...](0xc000)":          "main.F[...]",
		"(":                            "(",
		"created by main.f":            "created by main.f",
	} {
		if got := topFrame(in); got != want {
			t.Errorf("topFrame(%q) = %q, want %q", in, got, want)
		}
	}
}

// traced carries its stack in the form of github.com/pkg/errors.
type (
	frame  uintptr
	frames []frame
	traced struct {
		error
		pcs frames
	}
)

func (e *traced) StackTrace() frames { return e.pcs }

type called struct {
	error
	pcs []uintptr
}

func (e *called) Callers() []uintptr { return e.pcs }

//go:noinline
func callersHere() []uintptr {
	pcs := make([]uintptr, 32)
	return pcs[:runtime.Callers(2, pcs)]
}

func TestStack_ErrorsMayCarryTheirs(t *testing.T) {
	t.Parallel()
	pcs := callersHere()
	var fs frames
	for _, pc := range pcs {
		fs = append(fs, frame(pc))
	}
	deep := make([]uintptr, 1000)
	for i := range deep {
		deep[i] = pcs[0]
	}
	for _, err := range []error{
		&traced{errBare, fs},
		fmt.Errorf("x: %w", &traced{errBare, fs}),
		&called{errBare, pcs},
		&called{errBare, deep},
	} {
		got := new(Classifier).Classify(err)
		if top := topFrame(got.Stack); !strings.HasSuffix(top, ".TestStack_ErrorsMayCarryTheirs") {
			t.Errorf("%T: top frame %q in\n%s", err, top, got.Stack)
		}
		if len(got.Stack) > MaxStack || !strings.HasSuffix(got.Stack, "\n") {
			t.Errorf("%T: %d bytes of stack, want whole lines in at most %d", err, len(got.Stack), MaxStack)
		}
		if got.Fingerprint == new(Classifier).Classify(errBare).Fingerprint {
			t.Errorf("%T: the frame is not in the fingerprint", err)
		}
	}
	if got := new(Classifier).Classify(&traced{errBare, nil}); got.Stack != "" {
		t.Errorf("stack %q of an error without one", got.Stack)
	}
}

func TestPanic_FingerprintIgnoresTheLine(t *testing.T) {
	t.Parallel()
	c := new(Classifier)
	a := c.Classify(recovered(func() { explode(-1) })) // another line of the same function
	b := c.Classify(recovered(func() { explode(1) }))
	if a.Stack == b.Stack {
		t.Fatal("both panicked at the same line")
	}
	if a.Fingerprint != b.Fingerprint {
		t.Errorf("fingerprints %s and %s differ by the line only", a.Fingerprint, b.Fingerprint)
	}
	if d := c.Classify(recovered(func() { panic("record 1") })); d.Fingerprint == b.Fingerprint {
		t.Error("panics of two functions have the same fingerprint")
	}
}

func TestPanicError_ShowsItsValue(t *testing.T) {
	t.Parallel()
	cause := &skuError{4}
	err := error(&PanicError{Value: fmt.Errorf("x: %w", cause)})
	if !errors.Is(err, cause) {
		t.Error("errors.Is does not see the error that was passed to panic")
	}
	for _, tt := range []struct {
		value any
		want  string
	}{{"boom", "panic: boom"}, {7, "panic: 7"}, {nil, "panic: <nil>"}, {cause, "panic: unknown SKU 4"}} {
		if got := (&PanicError{Value: tt.value}).Error(); got != tt.want {
			t.Errorf("Error() = %q, want %q", got, tt.want)
		}
	}
}
