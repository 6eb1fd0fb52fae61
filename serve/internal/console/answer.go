package console

const (
	// mostForm bounds the body of a form, in bytes, and mostEdit that of one with a value.
	mostForm = 16 << 10
	mostEdit = 4 << 20
	// mostKey bounds an idempotency key, and mostWhy a reason, in bytes. They are the API's.
	mostKey = 200
	mostWhy = 4096
)

// answer is what a form is answered with: another page to go on to, or a page that stays as it is.
type answer struct {
	to string // below the server; empty for a page

	page     page
	template string
	model    any
	// problem is why what was asked for was not done; nil if nothing was, or all went well.
	problem error
}
