package connect

import (
	"strings"
)

// A setting has one name as a flag, as a key in a profile and, in capitals, as a variable.
type setting struct {
	name  string
	usage string // of the flag; what stands in backquotes is the value's name
	truth bool   // yes or no
	file  bool   // names a file, in a profile relative to the configuration file's folder
	// between separates several values within the text of one; empty where there is only one.
	// Several flags, and a list in a profile, are such a text.
	between string
}

const (
	brokers     = "brokers"
	clientID    = "client-id"
	timeout     = "timeout"
	useTLS      = "tls"
	tlsCA       = "tls-ca"
	tlsCert     = "tls-cert"
	tlsKey      = "tls-key"
	tlsName     = "tls-server-name"
	tlsInsecure = "tls-insecure-skip-verify"
	mechanism   = "sasl"
	user        = "sasl-user"
	password    = "sasl-password"
	token       = "sasl-token"
	retryName   = "retry-name"
	dlqName     = "dlq-name"
	ledgerName  = "ledger-name"
	hidePaths   = "redact"
	hideHeaders = "redact-header"
	hidePattern = "redact-pattern"
	hideNothing = "no-redact"

	registryURL      = "registry"
	registryUser     = registryURL + "-user"
	registryPassword = registryURL + "-password"
	registryToken    = registryURL + "-token"
	registryCA       = registryURL + "-ca"
	registryCert     = registryURL + "-cert"
	registryKey      = registryURL + "-key"

	fileSuffix = "-file" // the file that a secret is in
	envSuffix  = "-env"  // the variable that a secret is in, in profiles only
)

// secrets are the settings whose values stand in files or variables.
var secrets = []string{password, token, registryPassword, registryToken}

const (
	saslPlain    = "PLAIN"
	saslSCRAM256 = "SCRAM-SHA-256"
	saslSCRAM512 = "SCRAM-SHA-512"
	saslOAuth    = "OAUTHBEARER"
	saslNone     = "NONE"
)

// Mechanisms are the ways to authenticate, for help and completion.
var Mechanisms = []string{saslPlain, saslSCRAM256, saslSCRAM512, saslOAuth}

var settings = []setting{
	{name: brokers, usage: "`addresses` of some of the cluster's brokers, host:port by comma", between: ","},
	{name: clientID, usage: "`name` that brokers log and count requests by (default " + defaultClientID + ")"},
	{name: timeout, usage: "`duration` to wait for a broker that answers (default 10s)"},
	{name: useTLS, usage: "encrypt, and check the brokers' certificates; any other --tls-… option implies it", truth: true},
	{name: tlsCA, usage: "PEM `file` of the authorities to trust instead of the system's", file: true},
	{name: tlsCert, usage: "PEM `file` of this client's certificate (mTLS)", file: true},
	{name: tlsKey, usage: "PEM `file` of its key", file: true},
	{name: tlsName, usage: "`name` that the brokers' certificates must carry instead of their host's"},
	{name: tlsInsecure, usage: "accept any certificate: an attacker on the network can read and change everything", truth: true},
	{name: mechanism, usage: "`mechanism` to authenticate by: " + strings.Join(Mechanisms, ", ") + ", or none"},
	{name: user, usage: "`user` to authenticate as"},
	{name: password + fileSuffix, usage: "`file` that holds the password; or SIDING_SASL_PASSWORD", file: true},
	{name: token + fileSuffix, usage: "`file` that holds the OAUTHBEARER token, read again whenever one is asked for; or SIDING_SASL_TOKEN", file: true},
	{name: retryName, usage: "`template` of the retry topics' names (default {topic}.retry.{delay})"},
	{name: dlqName, usage: "`template` of the dead-letter topics' names (default {topic}.dlq)"},
	{name: ledgerName, usage: "`template` of the ledgers' names (default {topic}.dlq.ledger)"},
	{name: registryURL, usage: "`URL` of the schema registry, with Confluent's API, by which keys and values are decoded"},
	{name: registryUser, usage: "`user` at the registry"},
	{name: registryPassword + fileSuffix, usage: "`file` that holds the user's password; or SIDING_REGISTRY_PASSWORD", file: true},
	{name: registryToken + fileSuffix, usage: "`file` that holds a bearer token instead; or SIDING_REGISTRY_TOKEN", file: true},
	{name: registryCA, usage: "PEM `file` of the authorities to trust for the registry instead of the system's", file: true},
	{name: registryCert, usage: "PEM `file` of this client's certificate for the registry (mTLS)", file: true},
	{name: registryKey, usage: "PEM `file` of its key", file: true},
	{name: hidePaths, usage: "hide this `path` of JSON keys, values and headers, as in customer.card, items[*].iban or ..card; repeat for several", between: "\n"},
	{name: hideHeaders, usage: "hide the headers of this `name`; repeat for several", between: "\n"},
	{name: hidePattern, usage: "hide what this regular `expression` fits, in keys, values, headers and messages; repeat for several", between: "\n"},
}
