// Package logthrottle keeps messages that would come with every record or poll from filling the
// log. [Throttle] lets one of many equal messages through. [Storms] also counts: what its lines say
// adds up to what happened. Both bound their memory.
package logthrottle
