package api

import "time"

// LetterDetail is a dead letter with its history.
type LetterDetail struct {
	Letter
	Message  string   `json:"message,omitempty" doc:"What the last failure said."`
	Stack    string   `json:"stack,omitempty"`
	Frame    string   `json:"frame,omitempty" doc:"First function and line of the stack."`
	Attempts int      `json:"attempts" doc:"Deliveries before it was dead-lettered."`
	Original Position `json:"original" doc:"Where the record was first read."`
	// ProducedAt is the timestamp of the record where it was first read.
	ProducedAt *time.Time `json:"producedAt" doc:"Timestamp of the record where it was first read."`
	// Redriven is the run that brought an earlier letter of the record back; null if none did.
	Redriven *Redriven `json:"redriven" doc:"The run that brought an earlier letter of the record back."`
	// FirstFailedAt is when the record failed first, in all its lives.
	FirstFailedAt *time.Time    `json:"firstFailedAt"`
	History       []Attempt     `json:"history" doc:"The failed calls of the handler, oldest first."`
	Ledger        []LedgerEntry `json:"ledger" doc:"What became of the letter, oldest first."`
	TraceParent   string        `json:"traceparent,omitempty" doc:"W3C trace context of the last attempt."`
	Environment   string        `json:"environment,omitempty" doc:"Of the consumer that failed the record."`
	Host          string        `json:"host,omitempty" doc:"Of the consumer that failed the record."`
	// Redacted reports that parts are hidden.
	Redacted bool `json:"redacted" doc:"Parts are hidden by the server's configuration."`
	// Content is null for viewers.
	Content *Content `json:"content" doc:"Key, headers and value; null without the role reader."`
}

// Redriven says that an earlier letter of the record was redriven.
type Redriven struct {
	Run   string     `json:"run" doc:"Id of the redrive run."`
	Count int        `json:"count" doc:"Redrives of the record, this one included."`
	From  Position   `json:"from" doc:"The earlier letter."`
	At    *time.Time `json:"at"`
}

// Position is the place of a record.
type Position struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition" doc:"-1 if a letter of another program does not name it."`
	Offset    int64  `json:"offset" doc:"-1 if a letter of another program does not name it."`
}

// Attempt is a failed call of a handler.
type Attempt struct {
	Number  int       `json:"number" doc:"Of the delivery; it begins at 1 again when the record is redriven."`
	Call    int       `json:"call,omitempty" doc:"Of the call within the delivery, if there were several."`
	Class   string    `json:"class"`
	At      time.Time `json:"at"`
	Verdict string    `json:"verdict,omitempty" enum:"retry,terminal,discard"`
	Message string    `json:"message,omitempty"`
}

// LedgerEntry is an entry of the ledger about a letter.
type LedgerEntry struct {
	State  string    `json:"state" doc:"Empty if the entry withdrew the one before it."`
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Why    string    `json:"why,omitempty"`
	Run    string    `json:"run,omitempty" doc:"Id of the redrive run."`
	Class  string    `json:"class,omitempty" doc:"Class with which it failed again."`
	Target *Position `json:"target,omitempty" doc:"Where it was redriven to."`
	Edited []string  `json:"edited,omitempty" doc:"What the redrive changed."`
}

// Content is what a record carries.
type Content struct {
	Key     Bytes    `json:"key"`
	Headers []Header `json:"headers" doc:"The producer's, in their order."`
	Value   Bytes    `json:"value"`
	// MoreHeaders are those for which an answer has no room.
	MoreHeaders int `json:"moreHeaders,omitempty" doc:"How many more headers there are, for which this answer has no room."`
}

// Header is a header of a record.
type Header struct {
	Key   string `json:"key"`
	Value Bytes  `json:"value"`
}

// Bytes are bytes of a record: as text if they are UTF-8, or else in base64. Both are null for
// Kafka's null.
type Bytes struct {
	Text   *string `json:"text"`
	Base64 []byte  `json:"base64"`
	Size   int     `json:"size" doc:"In bytes, of all of them."`
	Cut    bool    `json:"cut,omitempty" doc:"Only the beginning is here."`
	// Decoded is what a key or a value says by its schema; null if no schema describes it, or it
	// cannot be decoded.
	Decoded *Decoded `json:"decoded,omitempty" doc:"What a key or a value says by its schema."`
	Problem string   `json:"problem,omitempty" doc:"Why a key or a value with a schema is not decoded."`
}

// Decoded is what bytes say by the schema of a registry.
type Decoded struct {
	JSON   string `json:"json" doc:"As text of JSON."`
	Size   int    `json:"size" doc:"In bytes, of all of it."`
	Cut    bool   `json:"cut,omitempty" doc:"Only the beginning is here."`
	Kind   string `json:"kind" enum:"avro,protobuf,json-schema"`
	Type   string `json:"type,omitempty" doc:"Full name of the type in the schema."`
	Schema int    `json:"schema,omitempty" doc:"Number of the schema at the registry."`
	GUID   string `json:"guid,omitempty" doc:"Of the schema, where a header names it so."`
}
