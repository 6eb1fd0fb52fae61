package classify

import "strings"

// What in a message is a value: each function looks at the message as it was said.

const uuidLen = 36

// isUUID reports whether s starts with 8-4-4-4-12 hex digits. Without it, a group of letters alone
// would stay in the text.
func isUUID(s string) bool {
	if len(s) < uuidLen || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	for i := range uuidLen {
		if s[i] != '-' && charKind[s[i]]&hexDigit == 0 {
			return false
		}
	}
	return len(s) == uuidLen || charKind[s[uuidLen]]&word == 0
}

// mostAddress bounds how far ahead an address is looked for, from each word.
const mostAddress = 64

// addressEnd returns the index after the e-mail, IPv6 or MAC address that begins with the word
// s[i:end], or 0. all has the kinds that each character of the word has.
func addressEnd(s string, i, end int, all charClass) int {
	switch s[end] {
	case '.', '+', '-', '_', '%', '@':
		j := end
		for j < len(s) && j < i+mostAddress && (charKind[s[j]]&word != 0 || strings.IndexByte(".+-_%", s[j]) >= 0) {
			j++
		}
		if j+1 < len(s) && s[j] == '@' && charKind[s[j+1]]&word != 0 {
			return runEnd(s, j+1, ".-")
		}
	case ':':
		if all&hexDigit == 0 || end-i > 4 {
			return 0
		}
		colons, digits, run := 0, false, 0
		j := i
		for ; j < len(s) && j < i+mostAddress && (s[j] == ':' || charKind[s[j]]&hexDigit != 0); j++ {
			if s[j] == ':' {
				colons, run = colons+1, 0
				continue
			}
			if run++; run > 4 {
				return 0
			}
			digits = digits || charKind[s[j]]&digit != 0
		}
		if colons >= 2 && digits && run > 0 && !joined(s, j) {
			return j
		}
	}
	return 0
}

// runEnd returns the index after the last letter or digit of what begins at s[i] and consists of
// words and the other characters.
func runEnd(s string, i int, others string) (end int) {
	for j := i; j < len(s); j++ {
		switch {
		case charKind[s[j]]&word != 0:
			end = j + 1
		case strings.IndexByte(others, s[j]) < 0:
			return end
		}
	}
	return end
}

// isSign reports whether the "-" at s[i] belongs to the number after it. Behind a quote it stays:
// else "'a'-1" would be masked as an apostrophe inside a word is.
func isSign(s string, i int) bool {
	return i+1 < len(s) && charKind[s[i+1]]&digit != 0 && (i == 0 || charKind[s[i-1]]&(word|quote) == 0)
}

// isValue reports whether the "=" at s[i] stands between a key and its value, as in "tenant=acme",
// and the value does not say what went wrong, as in "reason=declined".
func isValue(s string, i int) bool {
	if i == 0 || i+1 == len(s) || charKind[s[i-1]]&word == 0 || charKind[s[i+1]]&word == 0 {
		return false
	}
	key := i
	for key > 0 && i-key <= mostKey && charKind[s[key-1]]&word != 0 {
		key--
	}
	return !tells[s[key:i]]
}

func valueEnd(s string, i int) int { return runEnd(s, i, ".:/+-_@%~") }

// isCode reports whether s[i:end] is a code, such as a currency's or a country's: two or three
// capitals that are no known term and no part of a longer name, such as ERR_BAD.
func isCode(s string, i, end int) bool {
	if n := end - i; n < 2 || n > 3 {
		return false
	}
	for j := i; j < end; j++ {
		if s[j] < 'A' || s[j] > 'Z' {
			return false
		}
	}
	return !terms[s[i:end]] && (i == 0 || strings.IndexByte("_-.@#$", s[i-1]) < 0) &&
		(end == len(s) || strings.IndexByte("_-@#", s[end]) < 0 && (s[end] != '.' || !joined(s, end+1)))
}

// meetsCapital reports whether a capital stands at s[i], behind blanks and colons.
func meetsCapital(s string, i int) bool {
	for i < len(s) && (charKind[s[i]]&space != 0 || s[i] == ':') {
		i++
	}
	return i < len(s) && 'A' <= s[i] && s[i] <= 'Z'
}

// isName reports whether a word is a capital and lower-case letters.
func isName(w string) bool {
	if len(w) < 2 || w[0] < 'A' || w[0] > 'Z' {
		return false
	}
	for i := 1; i < len(w); i++ {
		if 'A' <= w[i] && w[i] <= 'Z' {
			return false
		}
	}
	return true
}

// isDateWord reports whether a word is the English name of a month or a day of the week.
func isDateWord(w string) bool { return len(w) >= 3 && w[0] >= 'A' && w[0] <= 'Z' && dateWords[w] }

// datesNumber reports whether a number follows at s[i], perhaps with one more name of a month
// before it, as in "Mon Nov 30".
func datesNumber(s string, i int) bool {
	for range 2 {
		for skipped := 0; skipped < 2 && i < len(s) && charKind[s[i]]&divider != 0; skipped++ {
			i++
		}
		if i == len(s) || charKind[s[i]]&word == 0 {
			return false
		}
		if charKind[s[i]]&digit != 0 {
			return true
		}
		end := i
		for end < len(s) && charKind[s[end]]&word != 0 {
			end++
		}
		if !isDateWord(s[i:end]) {
			return false
		}
		i = end
	}
	return false
}

func allDigits(s string) bool {
	for i := range len(s) {
		if charKind[s[i]]&digit == 0 {
			return false
		}
	}
	return true
}

// joined reports whether s[i] belongs to a word, or to one that is masked.
func joined(s string, i int) bool {
	return i >= 0 && i < len(s) && (charKind[s[i]]&word != 0 || s[i] == '#')
}

// mostKey is the length of the longest word in tells.
const mostKey = 11

var (
	// tells are keys whose values are words of the sentence.
	tells = setOf(`cause column desc description err error field kind message method msg op operation reason state
		status step table type`)
	// announces are words before a name.
	announces = setOf(`account bank brand buyer carrier city company country customer driver employee merchant
		name named owner partner patient person region seller shop store student supplier team tenant user vendor
		warehouse`)
	dateWords = setOf(`Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec
		January February March April June July August September October November December
		Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday`)
	// terms are short words in capitals that say what a message is about, and no values.
	terms = setOf(`ACK ACL ADD AES ALL AND ANY API ARN ARP AS ASN AWS BIC BY CA CAS CDC CDN CID CLI CMD CN
		CPU CRC CRL CSP CSR CSS CSV CTE DAG DB DDL DER DLQ DML DN DNS DO DOB DOM DSN EC EDI EFS
		EOF EOL EOT ERR FD FIN FIX FK FOR FS FTP GC GCM GCP GCS GET GID GPG GPU GRN GTE GUI HEX
		HPA HSM IAM ID IDP IDS IF IN INT IO IOT IP IPC IS ISO IV JDK JS JVM JWE JWK JWS JWT KEY
		KID KMS KV KYC LB LSN LT LTE MAC MAX MD MFA MIN MQ MSG MSK MTA MTU NAK NAN NAT NEW NFC NFS
		NIL NIN NO NOT NTP NUL OFF OK OLD ON OOM OR ORM OS OTP PAN PCI PDF PEM PG PID PII PIN PK
		PKI PO POS PR PSK PSP PUB PUT QR RAM RDS RFC RPC RPM RPO RSA RST RTO RTT RW SAN SDK SET
		SHA SKU SLA SLO SMS SMT SNI SNS SOA SP SPF SQL SQS SRE SRV SSE SSH SSL SSN SSO STS SUB SUM
		SVC SYN TAX TCP THE TID TIN TLS TLV TO TTL TTY TX UDP UI UID UPC URI URL URN USB UTF VAT
		VM VPC VPN VPS WAF WAL WS XA XID XML XSD XSS ZIP ZK`)
)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

type charClass uint8

const (
	letter charClass = 1 << iota
	digit
	hexDigit
	space
	quote
	divider // may stand between numbers that belong together

	word = letter | digit
)

// charKind classifies bytes; bytes of scripts other than ASCII count as letters.
var charKind = func() (t [256]charClass) {
	for c := range t {
		switch b := byte(c); {
		case '0' <= b && b <= '9':
			t[c] = digit | hexDigit
		case 'a' <= b && b <= 'f', 'A' <= b && b <= 'F':
			t[c] = letter | hexDigit
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', b >= 0x80:
			t[c] = letter
		case b == ' ', '\t' <= b && b <= '\r':
			t[c] = space
		case b == '\'', b == '"', b == '`':
			t[c] = quote
		}
	}
	for _, b := range []byte(" ,.:;/+-_") {
		t[b] |= divider
	}
	return t
}()
