package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
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

// standInWorld is what the stand-ins hold: from flags, or from a file of the same
// fields.
type standInWorld struct {
	Databases  []string                   `yaml:"databases"`
	Containers []containerSpec            `yaml:"containers"`
	Queues     []servicebusfake.QueueSpec `yaml:"queues"`
	Topics     []servicebusfake.TopicSpec `yaml:"topics"`
}

type containerSpec struct {
	Database     string   `yaml:"database"`
	ID           string   `yaml:"id"`
	PartitionKey pathList `yaml:"partitionKey"` // a path, or a list of them; default /id
	Partitions   int      `yaml:"partitions"`   // default 1
	Throughput   int      `yaml:"throughput"`   // request units per second; 0 = unlimited
	DefaultTTL   int      `yaml:"defaultTtl"`   // seconds; -1 = documents' own
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
		Use: "emulate [env]", Short: "serve stand-ins for Cosmos DB and Service Bus", GroupID: cli.GroupTry,
		Long: "Serve stand-ins for Cosmos DB and Service Bus. With env, and with the same addresses, print the settings\n" +
			"with which another terminal works on those that are served.",
		Example: "feedscale emulate --container shop/orders:4:/customerId --container shop/leases --queue scale-events\neval \"$(feedscale emulate env)\"",
		Args:    cobra.ArbitraryArgs,
	}
	f := c.Flags()
	var world standInWorld
	var o standInOptions
	f.StringVar(&o.cosmosAddr, "cosmos", "127.0.0.1:8081", "address of the Cosmos DB stand-in; port 0 is any free one")
	f.StringVar(&o.busAddr, "servicebus", "", "address of the Service Bus stand-in; port 0 is any free one (default 127.0.0.1:5672, with --tls 127.0.0.1:5671)")
	f.StringSliceVar(&o.regions, "regions", []string{"Local"}, "regions of the Cosmos DB account, the write region first, with commas; each further one listens on the next port")
	f.DurationVar(&o.retention, "retention", 10*time.Minute, "how far the feed of all versions and deletes reaches back; 0 = it is not offered")
	f.BoolVar(&o.withTLS, "tls", false, "serve HTTPS and AMQP over TLS with a certificate that is written to --certificates")
	f.StringVar(&o.certificates, "certificates", "data/certificates", "folder of the certificate (ca.pem) that --tls writes, and finds again")
	f.StringVar(&o.control, "control", "", "address at which faults are scripted (POST /faults); port 0 is any free one (default none, with --any-token a free one)")
	f.BoolVar(&o.anyToken, "any-token", false, "accept every Entra token unchecked, on loopback only, and serve tokens to DefaultAzureCredential")
	file := f.String("file", "", "YAML or JSON that describes databases, containers, queues and topics")
	f.StringArrayVar(&world.Databases, "database", nil, "database to create; may be repeated")
	create := func(what, form, pattern string, add func(part []string)) {
		parts := regexp.MustCompile("^" + pattern + "$")
		f.Func(what, what+" to create, "+form+"; may be repeated", func(text string) error {
			part := parts.FindStringSubmatch(text)
			if part == nil {
				return errors.New("allowed is " + form)
			}
			add(part[1:])
			return nil
		})
	}
	create("container", "DATABASE/CONTAINER[:PARTITIONS[:/PARTITIONKEY]]", `([^/:]+)/([^/:]+)(?::([1-9]\d*)?(?::(/.+))?)?`, func(part []string) {
		partitions, _ := strconv.Atoi(part[2]) // none is 0
		c := containerSpec{Database: part[0], ID: part[1], Partitions: partitions}
		if part[3] != "" {
			c.PartitionKey = strings.Split(part[3], ",")
		}
		world.Containers = append(world.Containers, c)
	})
	create("queue", "NAME[:sessions]", `([^:]+)(:sessions)?`, func(part []string) {
		world.Queues = append(world.Queues, servicebusfake.QueueSpec{Name: part[0], RequiresSession: part[1] != "", DuplicateDetectionWindow: duplicateWindow})
	})
	create("topic", "NAME", `(.+)`, func(part []string) { world.topic(part[0]) })
	create("subscription", "TOPIC/Subscriptions/NAME[:sessions]", `([^:]+?)/(?i:subscriptions)/([^:]+)(:sessions)?`, func(part []string) {
		t := world.topic(part[0])
		t.Subscriptions = append(t.Subscriptions, servicebusfake.SubscriptionSpec{Name: part[1], RequiresSession: part[2] != ""})
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.busAddr == "" {
			o.busAddr = "127.0.0.1:5672"
			if o.withTLS {
				o.busAddr = "127.0.0.1:" + amqpsPort
			}
		}
		switch name := strings.Join(args, " "); name {
		case "env":
			return o.printEnviron(env)
		case "":
			return serveStandIns(c.Context(), env, o, world, *file)
		default:
			return cli.Usage(fmt.Errorf("emulate: unexpected argument %q; allowed are none and env", name))
		}
	}
	return c
}

func serveStandIns(ctx context.Context, env cli.Env, o standInOptions, world standInWorld, file string) error {
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

// printEnviron prints the settings of the stand-ins that are served with these options, as "demo env" does.
func (o standInOptions) printEnviron(env cli.Env) error {
	connection, err := net.DialTimeout("tcp", o.cosmosAddr, environTimeout)
	if err != nil {
		return fmt.Errorf("no stand-in answers at %s (%w): start it with feedscale emulate, or name its --cosmos", o.cosmosAddr, err)
	}
	connection.Close()
	scheme, development, ca := "http", ";UseDevelopmentEmulator=true", ""
	if o.withTLS {
		folder, err := filepath.Abs(o.certificates)
		if err != nil {
			return err
		}
		scheme, development, ca = "https", "", filepath.Join(folder, "ca.pem")
	}
	printExports(env.Stdout, standInSettings(fmt.Sprintf("AccountEndpoint=%s://%s/;AccountKey=%s;", scheme, o.cosmosAddr, cosmosfake.WellKnownKey),
		fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s", o.busAddr, servicebusfake.DefaultKeyName, servicebusfake.DefaultKey)+development, ca))
	return nil
}

// standInSettings are the settings that lead to stand-ins.
func standInSettings(cosmos, bus, ca string) map[string]string {
	settings := map[string]string{"COSMOS": cosmos, "SERVICEBUS": strings.Replace(bus, ":"+amqpsPort+";", ";", 1)}
	if settings["SERVICEBUS"] != bus {
		settings["SERVICEBUS_MANAGEMENT"] = bus // clients of the management API would take 443 where no port is named
	}
	if ca != "" {
		settings["SSL_CERT_FILE"] = ca
	}
	return settings
}

// duplicateWindow is the window of queues that flags create: the service's own default where detection is on.
const duplicateWindow = 10 * time.Minute

// topic is that of a name, which is added where it is not there yet.
func (e *standInWorld) topic(name string) *servicebusfake.TopicSpec {
	at := slices.IndexFunc(e.Topics, func(t servicebusfake.TopicSpec) bool { return strings.EqualFold(t.Name, name) })
	if at < 0 {
		at = len(e.Topics)
		e.Topics = append(e.Topics, servicebusfake.TopicSpec{Name: name, DuplicateDetectionWindow: duplicateWindow})
	}
	return &e.Topics[at]
}

// read adds what a file describes. The empty name is no file.
func (e *standInWorld) read(name string) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var more standInWorld
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
	topics []servicebusfake.TopicSpec
	ca     string // file of the certificate that clients have to trust; "" without TLS
}

func startStandIns(o standInOptions, world standInWorld) (s *standIns, err error) {
	s = &standIns{topics: world.Topics}
	with := emulator.Options{
		Cosmos:     cosmosfake.Options{Addr: o.cosmosAddr, Regions: o.regions, VersionRetention: o.retention},
		ServiceBus: servicebusfake.Options{Addr: o.busAddr, Queues: world.Queues, Topics: world.Topics},
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
	s.Emulator, err = emulator.Start(with)
	return s, err
}

// amqpsPort is that of AMQP over TLS. Clients take it where an endpoint names
// none, and some get along with no other.
const amqpsPort = "5671"

// print says how to connect, in a form that a shell can take over. How topics are named, it says in
// comments: they are several values of one setting.
func (s *standIns) print(w io.Writer) {
	settings := standInSettings(s.Cosmos.ConnectionString(), s.ServiceBus.ConnectionString(), s.ca)
	if endpoint, header := s.Identity(); header != "" {
		delete(settings, "COSMOS")
		delete(settings, "SERVICEBUS")
		settings["COSMOS__accountEndpoint"] = s.Cosmos.Endpoint()
		settings["SERVICEBUS__fullyQualifiedNamespace"] = strings.TrimSuffix(s.ServiceBus.Addr().String(), ":"+amqpsPort)
		settings["IDENTITY_ENDPOINT"], settings["IDENTITY_HEADER"] = endpoint, header
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(w, "%s=%q\n", name, settings[name])
	}
	if control := s.Control(); control != "" {
		fmt.Fprintf(w, "FAULTS=%q\n", control+"/faults")
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
