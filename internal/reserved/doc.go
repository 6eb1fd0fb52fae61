// Package reserved finds siding's own headers among those of a record.
//
// It numbers their keys, holds their values by that number, and reads numbers. headers.Parse makes
// its Meta from [Fields], and so does [Peek], which is what a consumer of a retry topic needs
// first.
//
// It knows the format of numbers and no other: package headers knows what a header means, and
// whether its text is valid. The number of a key means nothing outside of the process.
package reserved
