package headers

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/internal/reserved"
)

// Position is the place of a record in Kafka.
type Position struct {
	Topic string
	// TopicID is the broker's id of the topic; all zero if unknown.
	TopicID   [16]byte
	Partition int32
	Offset    int64
	// Timestamp is the record's, in milliseconds; the zero time if unknown.
	Timestamp time.Time
}

// String returns the coordinates as "topic/partition/offset".
func (p Position) String() string {
	b := make([]byte, 0, len(p.Topic)+32)
	return string(p.append(b))
}

func (p Position) append(b []byte) []byte {
	b = append(b, p.Topic...)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(p.Partition), 10)
	b = append(b, '/')
	return strconv.AppendInt(b, p.Offset, 10)
}

// ParsePosition parses the output of Position.String. Its errors are ErrSyntax and ErrRange.
func ParsePosition(s string) (Position, error) {
	topic, rest, ok := strings.Cut(s, "/")
	partition, offset, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return Position{}, ErrSyntax
	}
	if err := checkTopic(topic); err != nil {
		return Position{}, err
	}
	p, err := reserved.Int(partition, 0, math.MaxInt32)
	if err != nil {
		return Position{}, err
	}
	o, err := reserved.Int(offset, 0, math.MaxInt64)
	if err != nil {
		return Position{}, err
	}
	return Position{Topic: topic, Partition: int32(p), Offset: o}, nil
}

// maxTopic is Kafka's longest topic name.
const maxTopic = 249

func checkTopic(s string) error {
	if s == "" || len(s) > maxTopic || s == "." || s == ".." {
		return ErrSyntax
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return ErrSyntax
		}
	}
	return nil
}
