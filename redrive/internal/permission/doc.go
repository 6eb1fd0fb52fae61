// Package permission turns the answers of brokers that deny an operation into errors that name the
// permission to grant, and checks permissions on topics before they are needed. It promises that an
// error of any other kind passes through unchanged. It knows nothing of runs, plans or letters.
package permission
