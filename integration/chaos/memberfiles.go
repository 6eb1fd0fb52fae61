package chaos

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"
)

// alarmIn returns the line of a log that tells of a data race, of the end by a panic, or of a log
// handler that panicked, and so told the journal nothing; empty if there is none.
func alarmIn(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadString('\n')
		for _, alarm := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: ", "siding: Config.Logger panicked"} {
			if strings.HasPrefix(line, alarm) {
				return strings.TrimSpace(line), nil
			}
		}
		if err == io.EOF {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
}

// readJSON reads what a member wrote to a file; ok is false if there is none.
func readJSON(name string, into any) (ok bool, err error) {
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err == nil, err
}
