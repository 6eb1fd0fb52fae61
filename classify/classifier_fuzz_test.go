package classify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

// errorFrom builds an error by a small program: each byte wraps, joins or replaces the error so
// far.
func errorFrom(program []byte, text string) error {
	err := errors.New(text)
	for _, op := range program {
		n := int(op >> 5)
		switch op & 31 {
		case 0:
			err = Retryable(err)
		case 1:
			err = Terminal(err)
		case 2:
			err = Discard(err)
		case 3:
			err = RetryAfter(err, time.Duration(n-3)*time.Second)
		case 4:
			err = As(err, text)
		case 5:
			err = fmt.Errorf("%s %d: %w", text, n, err)
		case 6:
			err = errors.Join(err, context.Canceled)
		case 7:
			err = errors.Join(nil, &skuError{n}, err)
		case 8:
			err = fmt.Errorf("%w: %w", err, hostile{})
		case 9:
			err = &PanicError{Value: err, Stack: []byte(text)}
		case 10:
			err = &PanicError{Value: text, Stack: []byte("goroutine 1 [running]:\npanic(1)\n" + text)}
		case 11:
			err = httpError{code: n * 100, after: time.Second}
		case 12:
			err = &pgError{text}
		case 13:
			err = &grpcError{&grpcStatus{grpcCode(n * 3)}}
		case 14:
			err = syscall.Errno(op)
		case 15:
			err = io.ErrUnexpectedEOF
		case 16:
			err = &loop{}
		case 17:
			err = bush{}
		case 18:
			err = hostileMany{}
		case 19:
			err = (*hostile)(nil)
		case 20:
			err = (*PanicError)(nil)
		case 21:
			err = &called{err, []uintptr{uintptr(op), 1}}
		case 22:
			err = uncomparable{}
		}
	}
	return err
}

func FuzzClassifier(f *testing.F) {
	f.Add([]byte{0, 4, 5}, "tax table: miss 7", uint8(0))
	f.Add([]byte{8, 6, 7, 3}, "\xff\x00", uint8(1))
	f.Add([]byte{9, 4, 10, 5}, "main.f()\n\tx:1\n", uint8(2))
	f.Add([]byte{12, 5}, "40001", uint8(3))
	f.Fuzz(func(t *testing.T, program []byte, text string, unknown uint8) {
		if len(program) > 300 {
			return
		}
		err := errorFrom(program, text)
		c := &Classifier{Unknown: Verdict(unknown), Rules: []Rule{
			Is(uncomparable{}, VerdictRetry, text),
			Type[*skuError](Verdict(unknown), ""),
			When(func(error) bool { panic(text) }, VerdictRetry, "x"),
		}}
		got := c.Classify(err)
		if !classFormat.MatchString(got.Class) {
			t.Errorf("class %q", got.Class)
		}
		if got.Verdict > VerdictDiscard {
			t.Errorf("verdict %v", got.Verdict)
		}
		if len(got.Fingerprint) != 16 || strings.Trim(got.Fingerprint, "0123456789abcdef") != "" {
			t.Errorf("fingerprint %q", got.Fingerprint)
		}
		if got.RetryAfter < 0 || got.RetryAfter > 0 && got.Verdict != VerdictRetry {
			t.Errorf("retry after %v with verdict %v", got.RetryAfter, got.Verdict)
		}
		if len(got.Stack) > MaxStack {
			t.Errorf("%d bytes of stack", len(got.Stack))
		}
		if again := c.Classify(err); again != got {
			t.Errorf("a second time: %+v\nfirst: %+v", again, got)
		}
	})
}
