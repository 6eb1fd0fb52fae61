package serve

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// Warnings returns what the configuration may have, and what is a risk nevertheless: files with
// secrets that other users of the machine can read, and tokens that go over the network as they
// are. Each is a [KeyError]. It looks at the files, and says nothing of those that it cannot find:
// that is for [Config.Check]. [New] writes the warnings to the log.
func (c Config) Warnings() (all []error) {
	c = c.withDefaults()
	warn := func(key, format string, args ...any) {
		all = append(all, &KeyError{Key: key, Problem: fmt.Sprintf(format, args...)})
	}
	for _, f := range c.secretFiles() {
		if info, err := os.Stat(f.name); f.name != "" && err == nil && isOpenToOthers(info) {
			warn(f.key, "other users of this machine can read or change %s (mode %04o): chmod 600 %[1]s", f.name, info.Mode().Perm())
		}
	}
	host, _, err := net.SplitHostPort(c.Listen)
	tokens := c.Access.TokensFile != "" || c.Access.OIDC != nil
	if tokens && err == nil && !isLoopback(host) && c.TLS.CertFile == "" && c.Access.Proxy == nil && !strings.HasPrefix(c.URL, "https://") {
		warn("tls", "not set, so tokens and sessions go over the network as they are: set cert-file and key-file, or, if a proxy before the server speaks HTTPS, set url to its https:// address")
	}
	if c.Registry.Unencrypted() {
		warn("registry.url", "it begins with http://, so the secret goes over the network as it is: use https://")
	}
	return all
}

// secretFile is a file with a secret, and the key that names it.
type secretFile struct{ key, name string }

func (c *Config) secretFiles() []secretFile {
	all := []secretFile{
		{"access.tokens-file", c.Access.TokensFile},
		{"access.session-key-file", c.Access.SessionKeyFile},
		{"tls.key-file", c.TLS.KeyFile},
		{"registry.password-file", c.Registry.PasswordFile},
		{"registry.token-file", c.Registry.TokenFile},
		{"registry.key-file", c.Registry.KeyFile},
	}
	if c.Access.OIDC != nil {
		all = append(all, secretFile{"access.oidc.client-secret-file", c.Access.OIDC.ClientSecretFile})
	}
	for i := range c.Notify {
		all = append(all, secretFile{fmt.Sprintf("notify[%d].url-file", i), c.Notify[i].URLFile})
	}
	return all
}
