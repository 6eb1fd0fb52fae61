package access

import (
	"context"
	"net/http"
)

type (
	contextKey struct{}
	stayKey    struct{}
)

// With returns a context that carries who sends a request.
func With(ctx context.Context, id *Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// From returns who sends the request of a context: one with the name nobody, without a role, if
// that is not known.
func From(ctx context.Context) *Identity {
	if id, ok := ctx.Value(contextKey{}).(*Identity); ok {
		return id
	}
	return &Identity{Name: "nobody"}
}

// Asking returns a context in which [Stays] finds out again who sends a request.
func Asking(ctx context.Context, r *http.Request, id *Identity, who func(*http.Request) (*Identity, error)) context.Context {
	return context.WithValue(ctx, stayKey{}, func() bool {
		now, err := who(r)
		return err == nil && now.Name == id.Name && now.Rights() == id.Rights()
	})
}

// Stays reports whether the sender of a request that lasts is still known, with the same roles. It
// is asked before each event of a stream.
func Stays(ctx context.Context) bool {
	stays, ok := ctx.Value(stayKey{}).(func() bool)
	return !ok || stays()
}
