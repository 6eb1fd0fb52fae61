package check

import (
	"bufio"
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
