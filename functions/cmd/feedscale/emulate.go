package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/pkg/emulator"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// emulated is what the stand-ins hold: from flags, or from a file of the same
// fields.
type emulated struct {
	Databases  []string            `yaml:"databases"`
	Containers []emulatedContainer `yaml:"containers"`
	Queues     []emulatedQueue     `yaml:"queues"`
	Topics     []emulatedTopic     `yaml:"topics"`
}

type emulatedContainer struct {
	Database     string   `yaml:"database"`
	ID           string   `yaml:"id"`
	PartitionKey pathList `yaml:"partitionKey"` // a path, or a list of them; default /id
	Partitions   int      `yaml:"partitions"`   // default 1
	Throughput   int      `yaml:"throughput"`   // request units per second; 0 = unlimited
	DefaultTTL   int      `yaml:"defaultTtl"`   // seconds; -1 = documents' own
}

// emulatedQueue has the fields of servicebusfake.QueueSpec, in their order, so that it converts.
type emulatedQueue struct {
	Name                     string        `yaml:"name"`
	LockDuration             time.Duration `yaml:"lockDuration"`
	MaxDeliveryCount         int           `yaml:"maxDeliveryCount"`
	RequiresSession          bool          `yaml:"requiresSession"`
	DuplicateDetectionWindow time.Duration `yaml:"duplicateDetection"` // 0 = off
	DefaultTTL               time.Duration `yaml:"defaultTtl"`
	DeadLetterOnExpiry       bool          `yaml:"deadLetterOnExpiry"`
	MaxMessageSize           int           `yaml:"-"`
}

type emulatedTopic struct {
	Name               string                 `yaml:"name"`
	DuplicateDetection time.Duration          `yaml:"duplicateDetection"` // window; 0 = off
	DefaultTTL         time.Duration          `yaml:"defaultTtl"`
	Subscriptions      []emulatedSubscription `yaml:"subscriptions"`
}

// emulatedSubscription has the fields of servicebusfake.SubscriptionSpec, in their order.
type emulatedSubscription struct {
	Name               string                `yaml:"name"`
	LockDuration       time.Duration         `yaml:"lockDuration"`
	MaxDeliveryCount   int                   `yaml:"maxDeliveryCount"`
	RequiresSession    bool                  `yaml:"requiresSession"`
	DefaultTTL         time.Duration         `yaml:"defaultTtl"`
	DeadLetterOnExpiry bool                  `yaml:"deadLetterOnExpiry"`
	Rules              []servicebusfake.Rule `yaml:"-"`
}

// pathList reads one path or a list of them.
type pathList []string

func (p *pathList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*p = pathList{n.Value}
		return nil
	}
	return n.Decode((*[]string)(p))
}

// emulate serves the stand-ins until it is interrupted.
func emulate(env cli.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "emulate", Short: "serve stand-ins for Cosmos DB and Service Bus",
		Example: "feedscale emulate --container shop/orders:4:/customerId --container shop/leases --queue scale-events",
	}
	f := c.Flags()
	var world emulated
	var o standInOptions
	f.StringVar(&o.cosmosAddr, "cosmos", "127.0.0.1:8081", "address of the Cosmos DB stand-in; port 0 is any free one")
	f.StringVar(&o.busAddr, "servicebus", "", "address of the Service Bus stand-in; port 0 is any free one (default 127.0.0.1:5672, with --tls 127.0.0.1:5671)")
	f.StringSliceVar(&o.regions, "regions", []string{"Local"}, "regions of the Cosmos DB account, the write region first, as a `list` with commas; each further one listens on the next port")
	f.DurationVar(&o.retention, "retention", 10*time.Minute, "how far the feed of all versions and deletes reaches back; 0 = it is not offered")
	f.BoolVar(&o.withTLS, "tls", false, "serve HTTPS and AMQP over TLS with a certificate that is written to --certificates")
	f.StringVar(&o.certificates, "certificates", "data/certificates", "folder of the certificate (ca.pem) that --tls writes, and finds again")
	f.StringVar(&o.control, "control", "", "address at which faults are scripted (POST /faults); port 0 is any free one (default none, with --any-token a free one)")
	f.BoolVar(&o.anyToken, "any-token", false, "accept every Entra token unchecked, on loopback only, and serve tokens to DefaultAzureCredential")
	file := f.String("file", "", "YAML or JSON file with databases, containers, queues and topics")
	f.StringArrayVar(&world.Databases, "database", nil, "database to create, by `name`; may be repeated")
	f.Func("container", "container to create, DATABASE/CONTAINER[:PARTITIONS[:/PARTITIONKEY]]; may be repeated", func(s string) error {
		c, err := parseContainer(s)
		world.Containers = append(world.Containers, c)
		return err
	})
	f.Func("queue", "queue to create, NAME[:sessions]; it detects duplicates; may be repeated", func(s string) error {
		q, err := parseQueue(s)
		world.Queues = append(world.Queues, q)
		return err
	})
	f.Func("topic", "topic to create; it detects duplicates; may be repeated", func(s string) error {
		if s == "" {
			return errors.New("allowed is NAME")
		}
		world.topic(s)
		return nil
	})
	f.Func("subscription", "subscription to create, with its topic, TOPIC/Subscriptions/NAME[:sessions]; may be repeated", func(s string) error {
		topic, subscription, err := parseSubscription(s)
		if err != nil {
			return err
		}
		t := world.topic(topic)
		t.Subscriptions = append(t.Subscriptions, subscription)
		return nil
	})
	c.RunE = func(c *cobra.Command, _ []string) error {
		return serveStandIns(c.Context(), env, o, world, *file)
	}
	return c
}

func serveStandIns(ctx context.Context, env cli.Env, o standInOptions, world emulated, file string) error {
	if o.busAddr == "" {
		o.busAddr = "127.0.0.1:5672"
		if o.withTLS {
			o.busAddr = "127.0.0.1:" + amqpsPort
		}
	}
	if err := world.read(file); err != nil {
		return cli.Usage(err)
	}
	o.logger = slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	stand, err := startStandIns(o, world)
	if err != nil {
		return cli.Usage(err)
	}
	stand.print(env.Stdout)
	<-ctx.Done()
	return stand.Close()
}

// parseContainer reads DATABASE/CONTAINER[:PARTITIONS[:/PARTITIONKEY]].
func parseContainer(s string) (emulatedContainer, error) {
	const form = "allowed is DATABASE/CONTAINER[:PARTITIONS[:/PARTITIONKEY]], such as shop/orders:4:/customerId"
	name, rest, _ := strings.Cut(s, ":")
	count, path, hasPath := strings.Cut(rest, ":")
	database, id, ok := strings.Cut(name, "/")
	if !ok || database == "" || id == "" || strings.Contains(id, "/") {
		return emulatedContainer{}, errors.New(form)
	}
	c := emulatedContainer{Database: database, ID: id}
	if count != "" {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			return emulatedContainer{}, fmt.Errorf("%q is no number of partitions; %s", count, form)
		}
		c.Partitions = n
	}
	if hasPath {
		if !strings.HasPrefix(path, "/") {
			return emulatedContainer{}, fmt.Errorf("%q is no partition key path; %s", path, form)
		}
		c.PartitionKey = strings.Split(path, ",")
	}
	return c, nil
}

// duplicateWindow is the window of queues that flags create: the service's own
// default where detection is on.
const duplicateWindow = 10 * time.Minute

func parseQueue(s string) (emulatedQueue, error) {
	name, option, _ := strings.Cut(s, ":")
	if name == "" || option != "" && option != "sessions" {
		return emulatedQueue{}, errors.New("allowed is NAME or NAME:sessions")
	}
	return emulatedQueue{Name: name, RequiresSession: option == "sessions", DuplicateDetectionWindow: duplicateWindow}, nil
}

// topic is that of a name, which is added where it is not there yet.
func (e *emulated) topic(name string) *emulatedTopic {
	at := slices.IndexFunc(e.Topics, func(t emulatedTopic) bool { return strings.EqualFold(t.Name, name) })
	if at < 0 {
		at = len(e.Topics)
		e.Topics = append(e.Topics, emulatedTopic{Name: name, DuplicateDetection: duplicateWindow})
	}
	return &e.Topics[at]
}

var subscriptionForm = regexp.MustCompile(`^([^:]+?)/(?i:subscriptions)/([^:]+)(:sessions)?$`)

// parseSubscription reads TOPIC/Subscriptions/NAME[:sessions], the word in any case.
func parseSubscription(s string) (topic string, subscription emulatedSubscription, err error) {
	part := subscriptionForm.FindStringSubmatch(s)
	if part == nil {
		return "", subscription, errors.New("allowed is TOPIC/Subscriptions/NAME or TOPIC/Subscriptions/NAME:sessions")
	}
	return part[1], emulatedSubscription{Name: part[2], RequiresSession: part[3] != ""}, nil
}

// read adds what a file describes. The empty name is no file.
func (e *emulated) read(name string) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var more emulated
	dec := yaml.NewDecoder(f)
	dec.KnownFields(true)
	if err := dec.Decode(&more); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	e.Databases = append(e.Databases, more.Databases...)
	e.Containers = append(e.Containers, more.Containers...)
	e.Queues = append(e.Queues, more.Queues...)
	e.Topics = append(e.Topics, more.Topics...)
	return nil
}

type standInOptions struct {
	cosmosAddr, busAddr string
	regions             []string
	retention           time.Duration
	withTLS             bool
	certificates        string
	control             string
	anyToken            bool
	logger              *slog.Logger
}

// standIns are the running stand-ins.
type standIns struct {
	*emulator.Emulator
	topics []emulatedTopic
	ca     string // file of the certificate that clients have to trust; "" without TLS
}

func startStandIns(o standInOptions, world emulated) (s *standIns, err error) {
	s = &standIns{topics: world.Topics}
	with := emulator.Options{
		Cosmos:     cosmosfake.Options{Addr: o.cosmosAddr, Regions: o.regions, VersionRetention: o.retention},
		ServiceBus: servicebusfake.Options{Addr: o.busAddr},
		Databases:  world.Databases, Control: o.control, AnyToken: o.anyToken, Logger: o.logger,
	}
	if o.withTLS {
		if with.Cosmos.TLS, s.ca, err = emulator.LoadCertificate(o.certificates, time.Now()); err != nil {
			return nil, err
		}
		with.ServiceBus.TLS = with.Cosmos.TLS
	}
	for _, c := range world.Containers {
		with.Containers = append(with.Containers, emulator.Container{Database: c.Database, ContainerSpec: cosmosfake.ContainerSpec{
			ID: c.ID, PartitionKey: c.PartitionKey, Partitions: c.Partitions, Throughput: c.Throughput, DefaultTTL: c.DefaultTTL,
		}})
	}
	for _, q := range world.Queues {
		with.ServiceBus.Queues = append(with.ServiceBus.Queues, servicebusfake.QueueSpec(q))
	}
	for _, t := range world.Topics {
		topic := servicebusfake.TopicSpec{
			Name: t.Name, DuplicateDetectionWindow: t.DuplicateDetection, DefaultTTL: t.DefaultTTL,
		}
		for _, s := range t.Subscriptions {
			topic.Subscriptions = append(topic.Subscriptions, servicebusfake.SubscriptionSpec(s))
		}
		with.ServiceBus.Topics = append(with.ServiceBus.Topics, topic)
	}
	s.Emulator, err = emulator.Start(with)
	return s, err
}

// amqpsPort is that of AMQP over TLS. Clients take it where an endpoint names
// none, and some get along with no other.
const amqpsPort = "5671"

// print says how to connect, in a form that a shell can take over. How topics are named, it says in
// comments: they are several values of one setting.
func (s *standIns) print(w io.Writer) {
	if endpoint, header := s.Identity(); header != "" {
		address := strings.TrimSuffix(s.ServiceBus.Addr().String(), ":"+amqpsPort)
		fmt.Fprintf(w, "COSMOS__accountEndpoint=%q\nSERVICEBUS__fullyQualifiedNamespace=%q\n", s.Cosmos.Endpoint(), address)
		fmt.Fprintf(w, "IDENTITY_ENDPOINT=%q\nIDENTITY_HEADER=%q\n", endpoint, header)
	} else {
		s.printConnectionStrings(w)
	}
	if control := s.Control(); control != "" {
		fmt.Fprintf(w, "FAULTS=%q\n", control+"/faults")
	}
	if s.ca != "" {
		fmt.Fprintf(w, "SSL_CERT_FILE=%q\n", s.ca)
	}
	for _, topic := range s.topics {
		fmt.Fprintf(w, "# to publish: FEEDSCALE_EVENTS=servicebus:SERVICEBUS/%s\n", topic.Name)
		for _, subscription := range topic.Subscriptions {
			sessions := ""
			if subscription.RequiresSession {
				sessions = " --sessions"
			}
			fmt.Fprintf(w, "# to consume%s: FEEDSCALE_EVENTS=servicebus:SERVICEBUS/%s/Subscriptions/%s\n", sessions, topic.Name, subscription.Name)
		}
	}
}

func (s *standIns) printConnectionStrings(w io.Writer) {
	fmt.Fprintf(w, "COSMOS=%q\n", s.Cosmos.ConnectionString())
	bus := s.ServiceBus.ConnectionString()
	portless := strings.Replace(bus, ":"+amqpsPort+";", ";", 1)
	fmt.Fprintf(w, "SERVICEBUS=%q\n", portless)
	if portless != bus {
		// Clients of the management API would take 443 where no port is named.
		fmt.Fprintf(w, "SERVICEBUS_MANAGEMENT=%q\n", bus)
	}
}
