// Package archive keeps exports of dead letters: in files, and in storage with the interface of
// Amazon S3. [Target.Write] writes one and reads it back, so that letters may be deleted after it
// returns. [Open] opens one, or all of a folder, for [dlq.Import].
//
// An archive has the lines of [dlq.Export], compressed by gzip if its name ends in .gz. It appears
// under its name when it is complete, and none is ever overwritten.
package archive
