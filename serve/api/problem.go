package api

import (
	"net/http"
	"strings"
	"time"
)

// Kind is what went wrong. It is the stable end of a problem's type; docs/serve.md explains each.
type Kind string

// The kinds of problems.
const (
	Unauthenticated Kind = "unauthenticated"
	ProviderDown    Kind = "provider-down"
	CrossOrigin     Kind = "cross-origin"
	TooManyRequests Kind = "too-many-requests"
	NoRoute         Kind = "no-route"
	InvalidRequest  Kind = "invalid-request"
	TooLarge        Kind = "too-large"
	TooSlow         Kind = "too-slow"
	Internal        Kind = "internal"
	NotRunning      Kind = "not-running"
	Timeout         Kind = "timeout"
	Kafka           Kind = "kafka"
	KafkaDenied     Kind = "kafka-denied"
	NoTopic         Kind = "no-topic"
	NoRole          Kind = "no-role"
	BadCursor       Kind = "bad-cursor"
	BadFilter       Kind = "bad-filter"
	BadEdit         Kind = "bad-edit"
	NoLetter        Kind = "no-letter"
	NotOpen         Kind = "not-open"
	WrongNumber     Kind = "wrong-number"
	Changed         Kind = "changed"
	NewerVersion    Kind = "newer-version"
	Redacted        Kind = "redacted"
	NoRun           Kind = "no-run"
	KeyReused       Kind = "key-reused"
	NoRule          Kind = "no-rule"
	NoRetention     Kind = "no-retention"
	NoLedger        Kind = "no-ledger"

	// Refusals of a run, in the words of package redrive.
	UnfinishedRun     Kind = "unfinished-run"
	RunHeld           Kind = "run-held"
	NothingSelected   Kind = "nothing-selected"
	NoTier            Kind = "no-tier"
	NoMembers         Kind = "no-members"
	CompactedTarget   Kind = "compacted-target"
	TooManyRedrives   Kind = "too-many-redrives"
	TooFewPartitions  Kind = "too-few-partitions"
	EditFailed        Kind = "edit-failed"
	Retention         Kind = "retention"
	NoTarget          Kind = "no-target"
	AnotherNaming     Kind = "another-naming"
	TooManyLetters    Kind = "too-many-letters"
	TooLargeARun      Kind = "too-large-a-run"
	TopicWasRecreated Kind = "topic-recreated"
)

// Statuses returns all kinds, with the status of HTTP that each is answered with.
func Statuses() map[Kind]int {
	return map[Kind]int{
		Unauthenticated: http.StatusUnauthorized, ProviderDown: http.StatusServiceUnavailable, CrossOrigin: http.StatusForbidden,
		TooManyRequests: http.StatusTooManyRequests, NoRoute: http.StatusNotFound, InvalidRequest: http.StatusUnprocessableEntity,
		TooLarge: http.StatusRequestEntityTooLarge, TooSlow: http.StatusRequestTimeout, Internal: http.StatusInternalServerError,
		NotRunning: http.StatusServiceUnavailable, Timeout: http.StatusGatewayTimeout, Kafka: http.StatusBadGateway, KafkaDenied: http.StatusBadGateway,
		NoTopic: http.StatusNotFound, NoRole: http.StatusForbidden, BadCursor: http.StatusBadRequest, BadFilter: http.StatusUnprocessableEntity,
		BadEdit: http.StatusUnprocessableEntity, NoLetter: http.StatusNotFound, NotOpen: http.StatusConflict, WrongNumber: http.StatusConflict,
		Changed: http.StatusConflict, NewerVersion: http.StatusConflict, Redacted: http.StatusForbidden, NoRun: http.StatusNotFound,
		KeyReused: http.StatusUnprocessableEntity, NoRule: http.StatusNotFound, NoRetention: http.StatusNotFound, NoLedger: http.StatusConflict,
		UnfinishedRun: http.StatusConflict, RunHeld: http.StatusConflict, NothingSelected: http.StatusConflict, NoTier: http.StatusConflict,
		NoMembers: http.StatusConflict, CompactedTarget: http.StatusConflict, TooManyRedrives: http.StatusConflict,
		TooFewPartitions: http.StatusConflict, EditFailed: http.StatusConflict, Retention: http.StatusConflict, NoTarget: http.StatusConflict,
		AnotherNaming: http.StatusConflict, TooManyLetters: http.StatusConflict, TooLargeARun: http.StatusConflict, TopicWasRecreated: http.StatusConflict,
	}
}

// typePrefix begins the types of problems.
const typePrefix = "https://github.com/sidingkafka/siding/blob/main/docs/serve.md#"

// Type returns the type of problems of the kind.
func (k Kind) Type() string { return typePrefix + string(k) }

// Problem is an error of RFC 9457.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Errors are the single faults of an input, if there are several.
	Errors []ProblemDetail `json:"errors,omitempty"`
	// RetryAfter is the wait that the answer's header of that name asks for. Zero is none.
	RetryAfter time.Duration `json:"-"`
}

// ProblemDetail is a fault of an input.
type ProblemDetail struct {
	Message  string `json:"message"`
	Location string `json:"location"`
	Value    any    `json:"value"`
}

// Kind returns the stable end of the type.
func (p *Problem) Kind() Kind {
	kind, _ := strings.CutPrefix(p.Type, typePrefix)
	return Kind(kind)
}

// Error returns what happened and what to do.
func (p *Problem) Error() string {
	text := p.Detail
	for _, e := range p.Errors {
		text += "; " + e.Location + ": " + e.Message
	}
	return text
}
