package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// Token is an entry of a token file.
type Token struct {
	// Name is written to ledgers, as who did something: token NAME. Tokens of the same name are the
	// same sender, as an old and a new one. Required.
	Name string `yaml:"name"`
	// SHA256 is the hash of the token in hexadecimal digits, as sha256sum prints it. The token
	// itself has to be random, of 128 bits at least: a hash of something shorter can be guessed.
	// Required.
	SHA256 string `yaml:"sha256"`
	// Grants are the roles that whoever has the token has. Required.
	Grants []Grant `yaml:"grants"`
}

// Tokens are the tokens of a file, which is read again when it changes. They are safe for
// concurrent use.
type Tokens struct {
	file *yamlfile.Watched[map[[sha256.Size]byte]*Identity]
}

// ReadTokens reads a token file:
//
//	tokens:
//	  - name: ada
//	    sha256: HASH
//	    grants: [{role: operator, topics: [orders*]}]
func ReadTokens(file string, log *slog.Logger) (*Tokens, error) {
	f, err := yamlfile.Watch(file, parseTokens, log)
	return &Tokens{f}, err
}

// TokenList is the content of a token file.
type TokenList struct {
	// Tokens are those that the server knows.
	Tokens []Token `yaml:"tokens"`
}

// guessed are texts that are no tokens, by their hashes. An empty one, or a line that is empty, is
// that of a variable that was not set.
var guessed = func() map[[sha256.Size]byte]string {
	all := map[[sha256.Size]byte]string{}
	for _, text := range []string{"", "test", "token", "password", "admin", "changeme", "example", "siding", "$TOKEN", "TOKEN"} {
		all[sha256.Sum256([]byte(text))] = text
		all[sha256.Sum256([]byte(text+"\n"))] = text
	}
	return all
}()

// parseTokens reads a token file. name is for errors, none of which quotes a hash.
func parseTokens(name string, text []byte) (map[[sha256.Size]byte]*Identity, error) {
	var content TokenList
	file, mistakes := yamlfile.Decode(name, text, &content)
	if file == nil {
		return nil, mistakes
	}
	known := map[[sha256.Size]byte]*Identity{}
	var all []error
	if content.Tokens == nil { // an editor empties a file before it writes it
		all = append(all, &yamlfile.KeyError{Key: "tokens", Problem: "required: a list of tokens, or [] for none"})
	}
	wrong := func(i int, key, problem string) {
		all = append(all, &yamlfile.KeyError{Key: fmt.Sprintf("tokens[%d].%s", i, key), Problem: problem})
	}
	for i, token := range content.Tokens {
		if token.Name == "" {
			wrong(i, "name", "required: it is written to ledgers")
		}
		if n := len(token.Name); n > mostName {
			wrong(i, "name", fmt.Sprintf("it has %d bytes, and %d are the most", n, mostName))
		}
		if len(token.Grants) == 0 {
			wrong(i, "grants", "required: as in [{role: viewer}]")
		}
		for j := range token.Grants {
			all = append(all, token.Grants[j].check(fmt.Sprintf("tokens[%d].grants[%d]", i, j)))
		}
		hash, err := hex.DecodeString(token.SHA256)
		if err != nil || len(hash) != sha256.Size {
			wrong(i, "sha256", "not 64 hexadecimal digits: as sha256sum prints them")
			continue
		}
		if text, public := guessed[[sha256.Size]byte(hash)]; public {
			wrong(i, "sha256", fmt.Sprintf("the hash of %q, which everybody can guess: take a random token, as openssl rand -hex 32 prints one", text))
		}
		if known[[sha256.Size]byte(hash)] != nil {
			wrong(i, "sha256", "another token has this hash")
		}
		known[[sha256.Size]byte(hash)] = identityOf(byToken, token.Name, token.Grants)
	}
	return known, file.At(errors.Join(mistakes, file.Further(errors.Join(all...), nil)))
}

// Find returns who a token is of; nil if no user has it. While the file is gone, empty or broken,
// the tokens before count, and the log says where it is wrong, once.
func (t *Tokens) Find(token string) *Identity {
	hash := sha256.Sum256([]byte(token))
	for known, id := range t.file.Get() {
		if subtle.ConstantTimeCompare(known[:], hash[:]) == 1 {
			return id
		}
	}
	return nil
}
