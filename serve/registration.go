package serve

import "github.com/sidingkafka/siding/serve/payload"

// codecOf opens the schema registry; nil without one. Who only checks a configuration has nothing
// that opens it.
func codecOf(r *payload.Registry, open func(payload.Registry) (payload.Codec, error)) (payload.Codec, error) {
	if err := r.Check(); err != nil || r.URL == "" {
		return nil, err
	}
	if _, err := r.Secret(); err != nil || open == nil {
		return nil, err
	}
	return open(*r)
}
