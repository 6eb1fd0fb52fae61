package integration

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// defaultImage is the public image of the Kafka version that siding is tested against.
const defaultImage = "apache/kafka:4.3.0"

// imageEnv names the image to run if the default one cannot be pulled.
const imageEnv = "SIDING_KAFKA_IMAGE"

// Option changes how a cluster is started.
type Option func(*config)

// WithBrokers sets the number of brokers; each is a controller too. A quorum survives the loss of
// one broker with three brokers or more. Default: 1.
func WithBrokers(n int) Option {
	return func(c *config) { c.brokers = n }
}

// WithConfig sets one broker setting on all brokers, by its name in server.properties, as in
// WithConfig("log.retention.ms", "1000"). It refuses the settings that connect the cluster
// (listeners, roles and quorum). Default: the broker's own, apart from those that [StartKafka]
// lists.
func WithConfig(key, value string) Option {
	return func(c *config) { c.settings[key] = value }
}

// WithUser adds a user. With users, each client has to log in as one of them, by SASL PLAIN without
// TLS. [Kafka.Opts] log in as the first user, and [Kafka.As] as any. Brokers connect to each other
// as User:ANONYMOUS: an authorizer needs that user and an admin in super.users. Default: no users
// and no login.
func WithUser(name, password string) Option {
	return func(c *config) { c.users = append(c.users, user{name, password}) }
}

// WithImage sets the image. It must accept the KAFKA_* environment of apache/kafka. Default:
// $SIDING_KAFKA_IMAGE, or apache/kafka:4.3.0 if that is unset.
func WithImage(image string) Option {
	return func(c *config) { c.image = image }
}

// WithAnnounced makes each broker announce another address to clients than its own, such as that of
// a proxy in front of it. The function gets the node and its own address; it is called before the
// node starts, for several nodes at a time. Default: a broker announces its own address.
func WithAnnounced(address func(node int, own string) string) Option {
	return func(c *config) { c.announced = address }
}

type config struct {
	announced func(node int, own string) string
	image     string
	brokers   int
	settings  map[string]string // by their names in server.properties
	users     []user

	listeners []listener
	files     map[string][]byte // by their paths in each broker's container
}

// user may log in.
type user struct{ name, password string }

// login returns the options by which a client logs in as the first user.
func (c config) login() []kgo.Opt {
	if len(c.users) == 0 {
		return nil
	}
	return as(c.users[0].name, c.users[0].password)
}

// as returns the options by which a client logs in.
func as(name, password string) []kgo.Opt {
	return []kgo.Opt{kgo.SASL(plain.Auth{User: name, Pass: password}.AsMechanism())}
}

// newConfig applies opts to the defaults and reports every problem at once.
func newConfig(opts []Option) (config, error) {
	c := config{image: os.Getenv(imageEnv), brokers: 1, settings: map[string]string{}}
	if c.image == "" {
		c.image = defaultImage
	}
	for _, opt := range opts {
		opt(&c)
	}
	var problems []error
	if c.brokers < 1 {
		problems = append(problems, fmt.Errorf("%d brokers: a cluster has at least one", c.brokers))
	}
	if c.image == "" {
		problems = append(problems, errors.New("the image has no name"))
	}
	owned := config{brokers: 1}.ownSettings(1, "")
	for _, key := range slices.Sorted(maps.Keys(c.settings)) {
		if _, ok := owned[key]; ok {
			problems = append(problems, fmt.Errorf("setting %q is StartKafka's own: it would not find its brokers", key))
		}
	}
	return c, errors.Join(problems...)
}

// environment returns the environment of one node's container; the image turns KAFKA_* into
// server.properties.
// The first of the advertised addresses is that of the clients' listener, the others are those of
// the further listeners.
func (c config) environment(node int, advertised ...string) map[string]string {
	settings := c.defaultSettings()
	maps.Copy(settings, c.settings)
	maps.Copy(settings, c.ownSettings(node, advertised...))
	env := map[string]string{ // three brokers share a laptop, and live for a minute
		"CLUSTER_ID":                 "c2lkaW5nLWludGVncmF0aQ",
		"KAFKA_HEAP_OPTS":            "-Xmx512m -Xms256m",
		"KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
	}
	for key, value := range settings {
		env["KAFKA_"+strings.ToUpper(settingEnv.Replace(key))] = value
	}
	return env
}

// settingEnv turns a setting's name into the environment variable that apache/kafka reads.
var settingEnv = strings.NewReplacer(".", "_", "_", "__", "-", "___")

// defaultSettings are the settings that differ from the broker's own defaults; StartKafka's
// documentation lists them.
func (c config) defaultSettings() map[string]string {
	replicas := strconv.Itoa(min(c.brokers, 3))
	inSync := strconv.Itoa(min(c.brokers, 2))
	return map[string]string{
		"offsets.topic.replication.factor":                 replicas,
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    inSync,
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            inSync,

		"group.initial.rebalance.delay.ms":         "0",
		"group.min.session.timeout.ms":             "500",
		"group.consumer.min.session.timeout.ms":    "500",
		"group.consumer.min.heartbeat.interval.ms": "100",
		"group.consumer.heartbeat.interval.ms":     "500",
	}
}

// ownSettings connect a node to its peers, and clients to the node.
func (c config) ownSettings(node int, advertised ...string) map[string]string {
	voters := make([]string, c.brokers)
	for i := range voters {
		voters[i] = fmt.Sprintf("%d@%s:%d", i+1, c.hostname(i+1), controllerPort)
	}
	own := map[string]string{
		"node.id":                        strconv.Itoa(node),
		"process.roles":                  "broker,controller",
		"controller.quorum.voters":       strings.Join(voters, ","),
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "INTERNAL",
		"listeners":                      fmt.Sprintf("CLIENT://:%d,INTERNAL://:%d,CONTROLLER://:%d", clientPort, internalPort, controllerPort),
		"advertised.listeners":           fmt.Sprintf("CLIENT://%s,INTERNAL://%s:%d", advertised[0], c.hostname(node), internalPort),
		"listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
	}
	if len(c.users) > 0 {
		own["listener.security.protocol.map"] = "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
		own["listener.name.client.sasl.enabled.mechanisms"] = "PLAIN"
		own["listener.name.client.plain.sasl.jaas.config"] = c.jaas()
	}
	for i, l := range c.listeners {
		l.configure(own, i, advertised[1+i])
	}
	return own
}

// jaas lists the users in the format of the brokers' log-in module.
func (c config) jaas() string {
	entry := "org.apache.kafka.common.security.plain.PlainLoginModule required"
	for _, u := range c.users {
		entry += fmt.Sprintf(" user_%s=%q", u.name, u.password)
	}
	return entry + ";"
}

// hostname returns the name under which a node's peers reach it.
func (c config) hostname(node int) string {
	if c.brokers == 1 {
		return "localhost" // no network, so no names
	}
	return fmt.Sprintf("kafka-%d", node)
}

// listener is a further way for clients into each broker, with a protocol and settings of its own.
// Its port is published like that of the clients' listener.
type listener struct {
	name     string            // in capitals, as in server.properties
	protocol string            // SSL, SASL_SSL, …
	settings map[string]string // by what follows listener.name.<name>. in server.properties
}

// firstListenerPort is the port of the first further listener inside a container; each further one
// has the next.
const firstListenerPort = 9100

// configure adds the listener, the config's i-th, to the settings of a node.
func (l listener) configure(own map[string]string, i int, advertised string) {
	own["listeners"] += fmt.Sprintf(",%s://:%d", l.name, firstListenerPort+i)
	own["advertised.listeners"] += fmt.Sprintf(",%s://%s", l.name, advertised)
	own["listener.security.protocol.map"] += fmt.Sprintf(",%s:%s", l.name, l.protocol)
	for key, value := range maps.All(l.settings) {
		own["listener.name."+strings.ToLower(l.name)+"."+key] = value
	}
}

// ports returns the ports inside a container that clients connect to, in the order of the addresses
// that [config.environment] takes.
func (c config) ports() []int {
	inside := []int{clientPort}
	for i := range c.listeners {
		inside = append(inside, firstListenerPort+i)
	}
	return inside
}
