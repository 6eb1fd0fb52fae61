package serve

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Load reads a configuration file. The error names the file, the lines, and what is allowed there.
// The fields without a yaml tag are the caller's to set before [New].
func Load(name string) (Config, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Config{}, err
	}
	var cfg Config
	if err := yaml.UnmarshalWithOptions(text, &cfg, yaml.Strict(), yaml.CustomUnmarshaler(readDuration)); err != nil {
		return Config{}, inFile(name, text, err)
	}
	full := cfg.withDefaults()
	if err := full.check(); err != nil {
		return Config{}, atLines(name, text, err)
	}
	return cfg, nil
}

// inFile says where in a file an error of the YAML is.
func inFile(name string, text []byte, err error) error {
	var wrong *durationError
	if errors.As(err, &wrong) {
		if file, err := parser.ParseBytes(text, 0); err == nil {
			for _, d := range file.Docs {
				for _, n := range ast.Filter(ast.StringType, d.Body) {
					if n.GetToken().Value == wrong.text {
						return fmt.Errorf("%s:%d: %w", name, n.GetToken().Position.Line, wrong)
					}
				}
			}
		}
		return fmt.Errorf("%s: %w", name, wrong)
	}
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	message := at.GetMessage()
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) {
		message += ": docs/serve.md has all keys"
	}
	return fmt.Errorf("%s:%d: %s", name, at.GetToken().Position.Line, message)
}

// durationError reports a text that is no duration.
type durationError struct{ text string }

func (e *durationError) Error() string {
	return fmt.Sprintf("%q is not a duration: as in 90s, 5m, 4h, 180d", e.text)
}

// readDuration reads a duration of Go, or of days.
func readDuration(d *time.Duration, text []byte) error {
	s := strings.Trim(strings.TrimSpace(string(text)), `"'`)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			*d = time.Duration(n) * 24 * time.Hour
			return nil
		}
	}
	is, err := time.ParseDuration(s)
	if err != nil {
		return &durationError{s}
	}
	*d = is
	return nil
}

// atLines gives each wrong key of a file its line. A key that is not in the file has none.
func atLines(name string, text []byte, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	file, parseErr := parser.ParseBytes(text, 0)
	var all []error
	for _, e := range joined.Unwrap() {
		var key *KeyError
		line := 0
		if parseErr == nil && errors.As(e, &key) {
			line = lineOf(file, key.Key)
		}
		if line > 0 {
			all = append(all, fmt.Errorf("%s:%d: %w", name, line, e))
		} else {
			all = append(all, fmt.Errorf("%s: %w", name, e))
		}
	}
	return errors.Join(all...)
}

// lineOf returns the line of a key or, if the file lacks it, of what it would belong to; 0 if that
// is missing as well.
func lineOf(file *ast.File, key string) int {
	for {
		if path, err := yaml.PathString("$." + key); err == nil {
			if node, err := path.FilterFile(file); err == nil && node != nil {
				return node.GetToken().Position.Line
			}
		}
		i := strings.LastIndex(key, ".")
		if i < 0 {
			return 0
		}
		key = key[:i]
	}
}
