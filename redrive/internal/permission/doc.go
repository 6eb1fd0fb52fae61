// Package permission turns the refusals of brokers into errors that name the permission to grant.
// It also checks permissions on topics before they are needed. It promises that an error of any
// other kind passes through unchanged. It knows nothing of runs, plans or letters.
package permission
