package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
)

// Token is an entry of a token file.
type Token struct {
	Name string `yaml:"name"`
	// SHA256 is the hash of the token in hexadecimal digits. The token itself has to be random, of
	// 128 bits at least: a hash of something shorter can be guessed.
	SHA256 string  `yaml:"sha256"`
	Grants []Grant `yaml:"grants"`
}

// Tokens are the tokens of a file, which is read again when it changes. They are safe for
// concurrent use.
type Tokens struct {
	file string
	log  *slog.Logger

	mu      sync.Mutex
	known   map[[sha256.Size]byte]*Identity
	looked  time.Time // at the file
	changed time.Time // the file's
	size    int64
}

// looksEvery is how often a file is looked at, at most.
const looksEvery = time.Second

// ReadTokens reads a token file:
//
//	tokens:
//	  - name: ada
//	    sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	    grants: [{role: operator, topics: [orders*]}]
func ReadTokens(file string, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{file: file, log: log}
	return t, t.read()
}

func (t *Tokens) read() error {
	info, err := os.Stat(t.file)
	if err != nil {
		return err
	}
	if info.ModTime().Equal(t.changed) && info.Size() == t.size {
		return nil
	}
	text, err := os.ReadFile(t.file)
	if err != nil {
		return err
	}
	known, err := parseTokens(text)
	if err != nil {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	t.known, t.changed, t.size = known, info.ModTime(), info.Size()
	return nil
}

func parseTokens(text []byte) (map[[sha256.Size]byte]*Identity, error) {
	var content struct {
		Tokens []Token `yaml:"tokens"`
	}
	if err := yaml.UnmarshalWithOptions(text, &content, yaml.Strict()); err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	known := map[[sha256.Size]byte]*Identity{}
	var all []error
	for i, token := range content.Tokens {
		hash, err := hex.DecodeString(token.SHA256)
		if err != nil || len(hash) != sha256.Size {
			all = append(all, fmt.Errorf("tokens[%d].sha256: not 64 hexadecimal digits", i))
			continue
		}
		if token.Name == "" {
			all = append(all, fmt.Errorf("tokens[%d].name: required, since it is written to ledgers", i))
		}
		if len(token.Grants) == 0 {
			all = append(all, fmt.Errorf("tokens[%d].grants: required", i))
		}
		for j := range token.Grants {
			if err := token.Grants[j].Check(); err != nil {
				all = append(all, fmt.Errorf("tokens[%d].grants[%d].%w", i, j, err))
			}
		}
		if known[[sha256.Size]byte(hash)] != nil {
			all = append(all, fmt.Errorf("tokens[%d].sha256: there are two with this hash", i))
		}
		known[[sha256.Size]byte(hash)] = &Identity{Name: token.Name, Grants: token.Grants}
	}
	return known, errors.Join(all...)
}

// Find returns who a token is of; nil if nobody has it. A file that became broken is logged, and the
// tokens before count.
func (t *Tokens) Find(token string) *Identity {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.looked) >= looksEvery {
		t.looked = now
		if err := t.read(); err != nil {
			t.log.Error("siding: the token file cannot be read; the tokens before count", "error", err)
		}
	}
	hash := sha256.Sum256([]byte(token))
	for known, id := range t.known {
		if subtle.ConstantTimeCompare(known[:], hash[:]) == 1 {
			return id
		}
	}
	return nil
}
