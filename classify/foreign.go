package classify

// Fingerprint returns the fingerprint of a failure that no [Classifier] saw, such as one of another
// program: of its class, its message without numbers and ids, and the function that failed. Either
// text may be empty.
func Fingerprint(class, message, frame string) string {
	return fingerprint(CleanClass(class), message, frame)
}
