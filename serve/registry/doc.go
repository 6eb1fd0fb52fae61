// Package registry reads and writes keys and values by the schemas of a registry with Confluent's
// API: Avro, Protobuf and JSON Schema.
//
// # What names the schema
//
// A value begins with a byte of zero and the schema's number in four bytes, behind which protobuf
// has the indexes of the message. Or a header names it, __key_schema_id or __value_schema_id: a
// byte of one and the 16 bytes of a GUID, or as above; then the value has nothing of it. The header
// counts first, and the last of several. Anything else is not the registry's, and is not asked for.
//
// # What the JSON is
//
// Members have the names and the order of the schema. Whole numbers are numbers, those of 64 bits
// too. NaN and infinite numbers are the texts "NaN", "Infinity" and "-Infinity", and bytes are
// base64.
//
// Avro: the value of a union stands alone, without its branch. A decimal is a number with all
// digits of its scale, 12.50; an instant is RFC 3339 in UTC, 2026-11-30T04:25:49.123Z, without the
// Z if it is local; a date is 2026-11-30, a time 04:25:49.123, a UUID of 16 bytes its usual text,
// and a duration {"months":1,"days":2,"millis":3}. A time that has no such form is its number. A
// logical type that is none of these counts as what it is made of.
//
// Protobuf: its mapping to JSON, but for names and numbers of 64 bits as above. An enum is its
// name, or its number if the schema has no name for it. A field without presence is there with its
// zero value. An Any is read if its type is in the schema or is one of protobuf's own; otherwise
// its value is base64.
//
// JSON Schema: the value as it was written, be it valid or not.
//
// # What Encode takes
//
// The same. A union's value gets the branch that it had at its place, if it fits that one, else the
// first that it fits; {"long": 5} names one. A field of Avro that is missing gets its default, and
// null if it may be null. JSON that does not fit is refused, and so is a change of what JSON has
// not wholly: fields that the schema does not know, a type of an Any that it does not know, text
// that is no UTF-8, a key of a map that is there twice. JSON Schema is checked in the draft that it
// names, without formats; a pattern has to be one of Go's package regexp.
//
// # Bounds
//
// A schema is asked for once a minute at most, whether that failed or not, and whoever asks
// meanwhile waits for the same answer; a schema that was read is kept. A registry that can't be
// reached is not asked for ten seconds. Requests, answers, schemas, references, values and texts
// are bounded, see the constants. No redirect is followed.
package registry
