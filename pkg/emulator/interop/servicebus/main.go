// Command servicebus runs a client of any language against a fresh stand-in of Service Bus:
//
//	go run ./pkg/emulator/interop/servicebus [-tls FOLDER] COMMAND ARGUMENT...
//
// It appends the connection string to the command and, with -tls, the address to dial and the file
// of the certificate to trust, which it writes into the folder. Its exit status is that of the
// command. run-servicebus.sh says which clients there are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		os.Exit(failed.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("servicebus", flag.ContinueOnError)
	folder := flags.String("tls", "", "speak TLS, and write the certificate to trust to ca.pem in this folder")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	command := flags.Args()
	if len(command) == 0 {
		return errors.New("say which command to run")
	}
	options := servicebusfake.Options{
		Queues: []servicebusfake.QueueSpec{{Name: "orders"}, {Name: "sessions", RequiresSession: true}},
		Topics: []servicebusfake.TopicSpec{{Name: "events", Subscriptions: []servicebusfake.SubscriptionSpec{
			{Name: "all"}, {Name: "ruled"}, {Name: "ordered", RequiresSession: true},
		}}},
	}
	var caFile string
	if *folder != "" {
		var err error
		if options.TLS, caFile, err = emulator.LoadCertificate(*folder, time.Now()); err != nil {
			return err
		}
	}
	server, err := servicebusfake.Start(options)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	command = append(command, server.ConnectionString())
	if caFile != "" {
		command = append(command, server.Addr().String(), caFile)
	}
	client := exec.CommandContext(ctx, command[0], command[1:]...)
	client.Stdout, client.Stderr = os.Stdout, os.Stderr
	return client.Run()
}
