package contract_test

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/contract"
)

const before = `
paths:
  /letters:
    get:
      operationId: list
      parameters:
      - {name: class, in: query, schema: {type: string, maxLength: 10}}
      responses:
        "200": {content: {application/json: {schema: {$ref: "#/components/schemas/Letter"}}}}
    post:
      operationId: change
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Change"}}}}
      responses:
        "202": {description: ok}
components:
  schemas:
    Letter:
      type: object
      required: [offset]
      properties:
        offset: {type: integer}
        state: {type: string, enum: [open, done]}
        next: {$ref: "#/components/schemas/Letter"}
    Change:
      type: object
      required: [why]
      properties:
        why: {type: string}
        how: {type: string, enum: [a, b]}
        n: {type: integer, minimum: 1}
        p: {type: integer, format: int32}
`

// What breaks a client is told, and what does not is not.
func TestBreaking_TellsWhatBreaksAClient(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ from, to, want string }{
		{"", "", ""},
		{"/letters:", "/letter:", "GET /letters is gone; POST /letters is gone"},
		{"name: class", "name: klass", "GET /letters: query parameter class is gone"},
		{"in: query, schema", "in: query, required: true, schema", "GET /letters: query parameter class is required now"},
		{"      - {name: class", "      - {name: new, in: query, required: true, schema: {type: string}}\n      - {name: class", "GET /letters: query parameter new is new and required"},
		{"      - {name: class", "      - {name: new, in: query, schema: {type: string}}\n      - {name: class", ""},
		{"maxLength: 10", "maxLength: 9", "GET /letters: query parameter class: maxLength is 9 now"},
		{"maxLength: 10", "maxLength: 11", ""},
		{`"202"`, `"200"`, "POST /letters: it no longer answers 202"},
		{"        offset: {type: integer}", "        at: {type: integer}", "Letter: offset is gone"},
		{"offset: {type: integer}", "offset: {type: string}", "Letter.offset: type string"},
		{"offset: {type: integer}", "offset: {type: [integer, \"null\"]}", "Letter.offset: type null"},
		{"required: [offset]", "required: []", "Letter: offset may be absent now"},
		{"[open, done]", "[open, done, gone]", ""},
		{"        offset: {", "        more: {type: string}\n        offset: {", ""},
		{"required: [why]", "required: [why, how]", "Change: how is required now"},
		{"required: [why]", "required: []", ""},
		{"[a, b]", "[a]", "Change.how: value b is not taken any more"},
		{"[a, b]", "[a, b, c]", ""},
		{"minimum: 1", "minimum: 2", "Change.n: minimum is 2 now"},
		{"int32", "int32, maximum: 2147483647", ""},
		{"int32", "int32, maximum: 2147483646", "Change.p: maximum is 2.147483646e+09 now"},
		{"minimum: 1", "minimum: 1, maximum: 2147483647", "Change.n: maximum is 2.147483647e+09 now"},
		{"        how: {", "        who: {", "Change: how is gone"},
	} {
		got, err := contract.Breaking([]byte(before), []byte(strings.Replace(before, test.from, test.to, 1)))
		if err != nil || strings.Join(got, "; ") != test.want {
			t.Errorf("%q to %q: %q, %v; want %q", test.from, test.to, strings.Join(got, "; "), err, test.want)
		}
	}
}
