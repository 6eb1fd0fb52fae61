package main

import (
	"testing"
	"time"
)

func TestFiguresReplaceThoseOfTheLastRun(t *testing.T) {
	t.Parallel()
	results := []result{
		{Name: "healthy", Ratio: 0.951234, Min: 0.94, Max: 0.96, Goal: ">= 0.9", OK: true, Unit: "x"},
		{Name: "delays-early", Ratio: 2, Max: 2, Goal: "<= 0", Unit: "records"},
	}
	block := figures(results, "4 CPUs", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	want := `

On 2026-11-21, 4 CPUs:

| line | figure | smallest … largest round | goal | |
|---|---|---|---|---|
| healthy | 0.9512 x | 0.94 … 0.96 | >= 0.9 | ok |
| delays-early | 2 records | 0 … 2 | <= 0 | **missed** |

`
	if block != want {
		t.Errorf("got\n%s\nwant\n%s", block, want)
	}
	once, err := withFigures([]byte("before\n"+docBegin+"\nold\n"+docEnd+"\nafter\n"), block)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := withFigures(once, block)
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + docBegin + block + docEnd + "\nafter\n"; string(once) != want || string(twice) != want {
		t.Errorf("got\n%s\nand then\n%s\nwant\n%s", once, twice, want)
	}
}

func TestADocumentWithoutABlockIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{"", docBegin, docEnd + docBegin} {
		if got, err := withFigures([]byte(doc), "figures"); err == nil {
			t.Errorf("%q became %q, want an error", doc, got)
		}
	}
}
