package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// KeyError reports a key of the configuration whose value is not allowed.
type KeyError = yamlfile.KeyError

// Load reads a configuration file, and checks it as [Config.Check] does. The error has every
// mistake, one a line, each with the file, the line, and what is allowed there. Names of files are
// relative to the folder of the file that has them. The fields without a yaml tag are the caller's
// to set before [New].
func Load(name string) (Config, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Config{}, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	var cfg Config
	file, mistakes := yamlfile.Decode(name, text, &cfg)
	if file == nil {
		return Config{}, mistakes
	}
	for _, path := range cfg.files() {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(name), *path)
		}
	}
	// Who may listen where depends on the access control, of which a part may be wrong.
	further := file.Further(cfg.Check(), map[string]string{"listen": "access"})
	if err := errors.Join(mistakes, further); err != nil {
		return Config{}, file.At(err)
	}
	return cfg, nil
}

// files are the fields that name files and directories.
func (c *Config) files() []*string {
	all := []*string{&c.RulesFile, &c.Access.TokensFile, &c.Access.SessionKeyFile, &c.TLS.CertFile, &c.TLS.KeyFile, &c.Registry.PasswordFile, &c.Registry.TokenFile, &c.Registry.CAFile, &c.Registry.CertFile, &c.Registry.KeyFile}
	if c.Access.OIDC != nil {
		all = append(all, &c.Access.OIDC.ClientSecretFile)
	}
	for i := range c.Notify {
		all = append(all, &c.Notify[i].URLFile)
	}
	for _, t := range c.Topics {
		if t.Retention != nil && !strings.Contains(t.Retention.Archive, "://") && !slices.Contains(all, &t.Retention.Archive) {
			all = append(all, &t.Retention.Archive) // an alias in the file stands for the same one
		}
	}
	return all
}

// Check returns all that is wrong with the configuration and with the files that it names. It reads
// these files, and connects to nothing. Each error of the configuration is a [KeyError]; one of
// another file names that file and the line.
func (c Config) Check() error {
	c = c.withDefaults()
	_, err := c.parts(slog.New(slog.DiscardHandler))
	return errors.Join(c.check(), err)
}
