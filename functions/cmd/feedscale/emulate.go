package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/emulator"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// standIns are the options of emulate.
type standIns struct {
	emulator.Options
	withTLS      bool
	certificates string // folder
	load         int    // documents per second; 0 = none
}

// world is the content of a file of stand-ins.
type world struct {
	Databases  []string                   `yaml:"databases"`
	Containers []emulator.Container       `yaml:"containers"`
	Queues     []servicebusfake.QueueSpec `yaml:"queues"`
	Topics     []servicebusfake.TopicSpec `yaml:"topics"`
}

// emulate serves the stand-ins until it is interrupted.
func emulate(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "emulate [env]", "serve stand-ins for Cosmos DB and Service Bus; with env, print their settings", program.GroupTry
	f.Example = "feedscale emulate --container shop/orders:4:/customerId --container shop/leases --queue scale-events\neval \"$(feedscale emulate env)\""
	var o standIns
	f.StringVar(&o.Cosmos.Addr, "cosmos", "127.0.0.1:8081", "address of the Cosmos DB stand-in; port 0 is any free one")
	f.StringVar(&o.ServiceBus.Addr, "servicebus", "", "address of the Service Bus stand-in; port 0 is any free one (default 127.0.0.1:5672, with --tls 127.0.0.1:5671)")
	f.StringSliceVar(&o.Cosmos.Regions, "regions", []string{"Local"}, "regions of the Cosmos DB account, the write region first, with commas; each further one listens on the next port")
	f.DurationVar(&o.Cosmos.VersionRetention, "retention", 10*time.Minute, "how far the feed of all versions and deletes reaches back; 0 = it is not offered")
	f.BoolVar(&o.withTLS, "tls", false, "serve HTTPS and AMQP over TLS with a certificate that is written to --certificates")
	f.StringVar(&o.certificates, "certificates", "data/certificates", "folder of the certificate (ca.pem) that --tls writes, and finds again")
	f.StringVar(&o.Control, "control", "", "address at which faults are scripted (POST /faults); port 0 is any free one (default none, with --any-token a free one)")
	f.BoolVar(&o.AnyToken, "any-token", false, "accept every Entra token unchecked, on loopback only, and serve tokens to DefaultAzureCredential")
	f.IntVar(&o.load, "load", 0, "orders per second to write to the first --container, which one worker processes at 40 a second; its leases are in the container leases")
	file := f.String("file", "", "YAML or JSON that describes databases, containers, queues and topics")
	f.StringArrayVar(&o.Databases, "database", nil, "database to create; may be repeated")
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
		partitions, _ := strconv.Atoi(part[2]) // an empty part is 0
		c := emulator.Container{Database: part[0], ContainerSpec: cosmosfake.ContainerSpec{ID: part[1], Partitions: partitions}}
		if part[3] != "" {
			c.PartitionKey = strings.Split(part[3], ",")
		}
		o.Containers = append(o.Containers, c)
	})
	create("queue", "NAME[:sessions]", `([^:]+)(:sessions)?`, func(part []string) {
		o.ServiceBus.Queues = append(o.ServiceBus.Queues, servicebusfake.QueueSpec{Name: part[0], RequiresSession: part[1] != "", DuplicateDetectionWindow: duplicateWindow})
	})
	create("topic", "NAME", `(.+)`, func(part []string) { o.topic(part[0]) })
	create("subscription", "TOPIC/Subscriptions/NAME[:sessions]", `([^:]+?)/(?i:subscriptions)/([^:]+)(:sessions)?`, func(part []string) {
		t := o.topic(part[0])
		t.Subscriptions = append(t.Subscriptions, servicebusfake.SubscriptionSpec{Name: part[1], RequiresSession: part[2] != ""})
	})
	f.Run(func(ctx context.Context, args []string) error {
		if o.withTLS {
			o.ServiceBus.Addr = cmp.Or(o.ServiceBus.Addr, loopback+amqpsPort)
		}
		o.ServiceBus.Addr = cmp.Or(o.ServiceBus.Addr, loopback+"5672")
		switch name := strings.Join(args, " "); name {
		case "env":
			return o.printEnviron(env)
		case "":
			return o.serve(ctx, env, *file)
		default:
			return program.Usage(fmt.Errorf("unexpected argument %q; allowed are none and env", name))
		}
	})
}

// serve serves until ctx ends.
func (o *standIns) serve(ctx context.Context, env program.Env, file string) error {
	if err := o.read(file); err != nil {
		return program.Usage(err)
	}
	if o.load > 0 && len(o.Containers) == 0 {
		return program.Usage(errors.New("--load: needs a container to write to, as in --container shop/orders:4 --container shop/leases"))
	}
	o.Logger = slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ca := ""
	if o.withTLS {
		var err error
		if o.Cosmos.TLS, ca, err = emulator.LoadCertificate(o.certificates, time.Now()); err != nil {
			return program.Usage(err)
		}
		o.ServiceBus.TLS = o.Cosmos.TLS
	}
	stand, err := emulator.Start(o.Options)
	if err != nil {
		return program.Usage(err)
	}
	o.print(env.Stdout, stand, ca)
	if o.load > 0 {
		to := o.Containers[0]
		err = demo.Drive(ctx, stand.Cosmos, to.Database, to.ID, o.load, o.Logger)
	} else {
		<-ctx.Done()
	}
	return errors.Join(err, stand.Close())
}

// printEnviron prints the settings for stand-ins that another process serves with the same options.
func (o *standIns) printEnviron(env program.Env) error {
	scheme, development, ca := "http", ";UseDevelopmentEmulator=true", ""
	if o.withTLS {
		folder, err := filepath.Abs(o.certificates)
		if err != nil {
			return err
		}
		scheme, development, ca = "https", "", filepath.Join(folder, "ca.pem")
	}
	printExports(env.Stdout, standInSettings(fmt.Sprintf("AccountEndpoint=%s://%s/;AccountKey=%s;", scheme, o.Cosmos.Addr, cosmosfake.WellKnownKey),
		fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s", o.ServiceBus.Addr, servicebusfake.DefaultKeyName, servicebusfake.DefaultKey)+development, ca))
	return nil
}

// standInSettings returns the settings for stand-ins.
func standInSettings(cosmos, bus, ca string) map[string]string {
	settings := map[string]string{"COSMOS": cosmos, "SERVICEBUS": strings.Replace(bus, ":"+amqpsPort+";", ";", 1)}
	if settings["SERVICEBUS"] != bus {
		settings["SERVICEBUS_MANAGEMENT"] = bus // management clients default to port 443
	}
	if ca != "" {
		settings["SSL_CERT_FILE"] = ca
	}
	return settings
}

// duplicateWindow is the window of queues and topics that flags define: the service's default if
// detection is on.
const duplicateWindow = 10 * time.Minute

// topic returns a topic of this name; it adds one if there is none.
func (o *standIns) topic(name string) *servicebusfake.TopicSpec {
	topics := &o.ServiceBus.Topics
	at := slices.IndexFunc(*topics, func(t servicebusfake.TopicSpec) bool { return strings.EqualFold(t.Name, name) })
	if at < 0 {
		at = len(*topics)
		*topics = append(*topics, servicebusfake.TopicSpec{Name: name, DuplicateDetectionWindow: duplicateWindow})
	}
	return &(*topics)[at]
}

// read adds the content of a file; "" means no file.
func (o *standIns) read(name string) error {
	if name == "" {
		return nil
	}
	text, err := bounded.ReadFile(name)
	if err != nil {
		return err
	}
	var more world
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&more); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	o.Databases, o.Containers = append(o.Databases, more.Databases...), append(o.Containers, more.Containers...)
	o.ServiceBus.Queues, o.ServiceBus.Topics = append(o.ServiceBus.Queues, more.Queues...), append(o.ServiceBus.Topics, more.Topics...)
	return nil
}

// amqpsPort is the port of AMQP over TLS. Some clients cannot use another.
const amqpsPort = "5671"

// print prints the settings as lines for a shell, and the entity paths of topics as comments.
func (o *standIns) print(w io.Writer, s *emulator.Emulator, ca string) {
	settings := standInSettings(s.Cosmos.ConnectionString(), s.ServiceBus.ConnectionString(), ca)
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
	for _, topic := range o.ServiceBus.Topics {
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
