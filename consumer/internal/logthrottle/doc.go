// Package logthrottle keeps a message that would come with every record or poll from filling the
// log. It lets one message through a key and interval, counts the others, and bounds its memory.
package logthrottle
