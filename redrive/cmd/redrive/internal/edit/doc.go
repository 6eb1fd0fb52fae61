// Package edit makes the flags that change dead letters on their way back into a function. What stands in the DLQ stays
// as it is.
package edit
