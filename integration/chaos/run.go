package chaos

import (
	"context"
	"fmt"
	"os"
)

// Run makes one run and returns what it found. The error says why it could not be made; a broken
// promise is none, see [Report.Broken].
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(Faults()); err != nil {
		return nil, err
	}
	own := cfg.Dir == ""
	if own {
		dir, err := os.MkdirTemp("", "siding-chaos-")
		if err != nil {
			return nil, err
		}
		cfg.Dir = dir
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	e, err := newExecution(cfg)
	if err != nil {
		return nil, err
	}
	rep, err := e.run(ctx)
	e.close() // before the folder is removed: the embedded broker writes as it ends
	if err != nil {
		return nil, fmt.Errorf("chaos: seed %d: %w (journals and logs are in %s)", cfg.Seed, err, cfg.Dir)
	}
	rep.Dir = cfg.Dir
	if cfg.Results != "" {
		if err := rep.append(cfg.Results); err != nil {
			return nil, err
		}
	}
	if own && len(rep.Broken) == 0 {
		rep.Dir = ""
		return rep, os.RemoveAll(cfg.Dir)
	}
	return rep, nil
}
