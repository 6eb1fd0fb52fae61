package classify

import (
	"reflect"
	"strings"
	"sync"
	"time"
)

// Methods that identify an error without importing its package.
type (
	netError interface {
		Timeout() bool
		Temporary() bool
	} // net.Error
	statusCode     interface{ StatusCode() int }     // most HTTP clients
	httpStatusCode interface{ HTTPStatusCode() int } // AWS SDK (smithy)
	httpCode       interface{ HTTPCode() int }       // Google API clients (gax)
	sqlState       interface{ SQLState() string }    // pgx, lib/pq
	errorCode      interface{ ErrorCode() string }   // AWS SDK (smithy)
	redisError     interface{ RedisError() }         // go-redis
	retryAfter     interface{ RetryAfter() time.Duration }
	callers        interface{ Callers() []uintptr } // go-errors
)

// shape is the knowledge about an error from its type alone. Each type is examined once: asking
// every error for every method would be the most expensive part.
// See DESIGN.md, "What an error means".
type shape struct {
	name string // as a class, "" if the type has no meaning
	has  capability
	grpc *statusMethods // nil without gRPC's status
}

type capability uint32

const (
	wrapsOne capability = 1 << iota
	wrapsMany
	isNet
	isDecode
	isDNS
	hasIs
	hasStatusCode
	hasHTTPStatusCode
	hasHTTPCode
	hasSQLState
	hasRetryAfter
	hasCallers
	hasStackTrace
	hasErrorCode
	isRedis
	isMySQL
	isKafka
	isPlain
)

// shapes maps reflect.Type to *shape. It has one entry for each error type of the program.
var shapes sync.Map

func shapeOf(err error) *shape {
	t := reflect.TypeOf(err)
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, newShape(t))
	return s.(*shape)
}

func newShape(t reflect.Type) *shape {
	s := &shape{}
	for c, method := range map[capability]reflect.Type{
		wrapsOne:          reflect.TypeFor[interface{ Unwrap() error }](),
		wrapsMany:         reflect.TypeFor[interface{ Unwrap() []error }](),
		isNet:             reflect.TypeFor[netError](),
		hasIs:             reflect.TypeFor[interface{ Is(error) bool }](),
		hasStatusCode:     reflect.TypeFor[statusCode](),
		hasHTTPStatusCode: reflect.TypeFor[httpStatusCode](),
		hasHTTPCode:       reflect.TypeFor[httpCode](),
		hasSQLState:       reflect.TypeFor[sqlState](),
		hasErrorCode:      reflect.TypeFor[errorCode](),
		isRedis:           reflect.TypeFor[redisError](),
		hasRetryAfter:     reflect.TypeFor[retryAfter](),
		hasCallers:        reflect.TypeFor[callers](),
	} {
		if t.Implements(method) {
			s.has |= c
		}
	}
	s.grpc = statusMethodsOf(t)
	if isStackMethod(t) {
		s.has |= hasStackTrace
	}

	elem := t
	for elem.Kind() == reflect.Pointer && elem.Name() == "" {
		elem = elem.Elem()
	}
	switch full := elem.PkgPath() + "." + elem.Name(); {
	case decodeErrors[full]:
		s.has |= isDecode
	case full == "net.DNSError":
		s.has |= isDNS
	case full == "errors.errorString":
		s.has |= isPlain
	case isMySQLError(elem):
		s.has |= isMySQL
	case isKafkaError(elem):
		s.has |= isKafka
	}
	if elem.Name() != "" && !buildsErrors(elem.PkgPath()) {
		s.name = typeName(elem)
	}
	return s
}

// decodeErrors are named, not imported: domain code that imports this package should not link every
// codec of the standard library.
var decodeErrors = map[string]bool{
	"encoding/asn1.StructuralError":         true,
	"encoding/asn1.SyntaxError":             true,
	"encoding/base32.CorruptInputError":     true,
	"encoding/base64.CorruptInputError":     true,
	"encoding/csv.ParseError":               true,
	"encoding/hex.InvalidByteError":         true,
	"encoding/json.SyntaxError":             true,
	"encoding/json.UnmarshalTypeError":      true,
	"encoding/json/jsontext.SyntacticError": true,
	"encoding/json/v2.SemanticError":        true,
	"encoding/xml.SyntaxError":              true,
	"encoding/xml.UnmarshalError":           true,
	"strconv.NumError":                      true,
	"time.ParseError":                       true,
}

// buildsErrors reports whether a package only makes, wraps and joins errors, so that its types do
// not name the fault.
func buildsErrors(pkg string) bool {
	switch pkg {
	case "errors", "fmt",
		"golang.org/x/xerrors",
		"github.com/pkg/errors",
		"github.com/go-errors/errors",
		"github.com/hashicorp/go-multierror",
		"go.uber.org/multierr":
		return true
	}
	return strings.HasPrefix(pkg, "github.com/cockroachdb/errors")
}

// typeName returns a type's name as a class: "orders.SKUError", without the
// star of a pointer.
func typeName(t reflect.Type) string {
	return CleanClass(strings.TrimLeft(t.String(), "*"))
}
