// Package logthrottle keeps a message that would come with every record or poll from filling the
// log. It promises one message a key and interval, with the number of those that it held back, in
// bounded memory. It knows nothing of what is logged.
package logthrottle
