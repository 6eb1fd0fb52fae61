package access

import (
	"slices"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// A token file is taken whole or refused with its name, and never quoted: neither the log nor a
// terminal shows a hash. Each user in a file that was taken has a name and a role.
func FuzzTokenList_IsTakenWholeOrRefused(f *testing.F) {
	hash := strings.Repeat("9f", 32)
	entry := "name: ada, sha256: " + hash + ", grants: [{role: operator, topics: [orders*]}]"
	for _, text := range []string{
		"", "tokens:", "tokens: []", "tokens: [{" + entry + "}]", "tokens: [{" + entry + "}, {" + entry + "}]", "tokens: [{name: ada, sha256: '" + hash[1:] + "', grants: [{role: viewer}]}]",
		"tokens: [{name: '', sha256: " + hash + ", grants: [{role: viewer}]}]", "tokens: [{name: ada, sha256: [" + hash + "], grants: {role: viewer}}]", "tokens: {" + entry + "}", "tokens: [{" + entry + ", x: y}]",
		"tokens: [{name: ada, sha256: 12, grants: [{role: king}]}]", "a: &a [*a]", "tokens: [", "\x00", "tokens: [{name: *x}]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		known, err := parseTokens("tokens.yaml", []byte(text))
		if err == nil {
			for _, id := range known {
				if name, ok := strings.CutPrefix(id.Name, "token "); !ok || name == "" || len(id.Grants) == 0 || slices.ContainsFunc(id.Grants, func(g Grant) bool { return g.Role == None }) {
					t.Errorf("%q has %+v", text, id)
				}
			}
			return
		}
		if !strings.HasPrefix(err.Error(), "tokens.yaml") {
			t.Errorf("%q: %v", text, err)
		}
		var content TokenList
		if _, err := yamlfile.Decode("tokens.yaml", []byte(text), &content); err != nil {
			return
		}
		for _, token := range content.Tokens {
			quoted := slices.ContainsFunc(token.Grants, func(g Grant) bool {
				return slices.ContainsFunc(g.Topics, func(topic string) bool { return strings.Contains(topic, token.SHA256) })
			})
			if len(token.SHA256) >= 32 && !quoted && strings.Contains(err.Error(), token.SHA256) {
				t.Errorf("%q: the error has a hash: %v", text, err)
			}
		}
	})
}
