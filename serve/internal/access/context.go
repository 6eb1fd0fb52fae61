package access

import "context"

type contextKey struct{}

// With returns a context that carries who sends a request.
func With(ctx context.Context, id *Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// From returns who sends the request of a context: nobody, with no role, if that is not known.
func From(ctx context.Context) *Identity {
	if id, ok := ctx.Value(contextKey{}).(*Identity); ok {
		return id
	}
	return &Identity{Name: "nobody"}
}
