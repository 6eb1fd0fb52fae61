package avro

import "testing"

// A logical type that is not valid, or not known, counts as what it is made of.
func TestNode_IgnoresOddLogicalTypes(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"bytes","logicalType":"decimal","precision":0}`:                       "bytes/",
		`{"type":"bytes","logicalType":"decimal"}`:                                     "bytes/",
		`{"type":"bytes","logicalType":"decimal","precision":2,"scale":3}`:             "bytes/",
		`{"type":"bytes","logicalType":"decimal","precision":2,"scale":"x"}`:           "bytes/",
		`{"type":"bytes","logicalType":"decimal","precision":2}`:                       "bytes/decimal",
		`{"type":"int","logicalType":"timestamp-millis"}`:                              "int/",
		`{"type":"long","logicalType":"date"}`:                                         "long/",
		`{"type":"long","logicalType":"later"}`:                                        "long/",
		`{"type":"long","logicalType":7}`:                                              "long/",
		`{"type":{"type":"int","logicalType":"date"}}`:                                 "int/date",
		`{"type":"fixed","name":"F","size":11,"logicalType":"duration"}`:               "fixed/",
		`{"type":"fixed","name":"F","size":16,"logicalType":"uuid"}`:                   "fixed/uuid",
		`{"type":"string","logicalType":"uuid"}`:                                       "string/",
		`{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":4}`:   "fixed/decimal",
		`{"type":"fixed","name":"a.F","size":2,"namespace":"b","logicalType":"other"}`: "fixed/",
	} {
		if n := parsed(t, schema).root; n.kind+"/"+n.logical != want {
			t.Errorf("%s is %s/%s, want %s", schema, n.kind, n.logical, want)
		}
	}
}
