// Package fifo is a first-in, first-out queue that reuses its memory. A queue whose length stays
// bounded stops allocating. It keeps no reference to an element that was taken out. It is not safe
// for concurrent use.
package fifo
