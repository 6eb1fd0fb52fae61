package console

import (
	"fmt"
	"net/url"
)

// topicPath is the address of a topic's page. base is the path below which the console is mounted.
func topicPath(base, topic string) string { return base + "/topics/" + url.PathEscape(topic) }

// letterPath is the address of a letter's page. path is that of its topic.
func letterPath(path string, partition int32, offset int64) string {
	return fmt.Sprintf("%s/letters/%d/%d", path, partition, offset)
}

// letterName is how a text names a letter.
func letterName(partition int32, offset int64) string { return fmt.Sprintf("%d/%d", partition, offset) }

// runPath is the address of a run's page. path is that of its topic.
func runPath(path, id string) string { return path + "/runs/" + url.PathEscape(id) }

// rulePath is the address of a rule's page about a topic.
func rulePath(base, rule, topic string) string {
	return base + "/rules/" + url.PathEscape(rule) + "/topics/" + url.PathEscape(topic)
}
