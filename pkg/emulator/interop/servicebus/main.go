// Command servicebus runs a client of any language against a fresh stand-in of Service Bus:
//
//	go run ./pkg/emulator/interop/servicebus [-tls CA_FILE] COMMAND ARGUMENT...
//
// It appends the connection string to the command and, with -tls, the address to dial and CA_FILE, into which it writes the
// certificate to trust. Its exit status is that of the command. run-servicebus.sh says which clients there are.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"time"

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
	caFile := flags.String("tls", "", "speak TLS, and write the certificate to trust to this file")
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
	if *caFile != "" {
		certificate, err := newCertificate(*caFile)
		if err != nil {
			return fmt.Errorf("making a certificate: %w", err)
		}
		options.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	server, err := servicebusfake.Start(options)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	command = append(command, server.ConnectionString())
	if *caFile != "" {
		command = append(command, server.Addr().String(), *caFile)
	}
	client := exec.CommandContext(ctx, command[0], command[1:]...)
	client.Stdout, client.Stderr = os.Stdout, os.Stderr
	return client.Run()
}

// newCertificate makes a certificate for this machine that signs itself, and writes it to a file.
func newCertificate(file string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	// Java takes no certificate whose subject is empty.
	template := &x509.Certificate{
		Subject:      pkix.Name{CommonName: "localhost"},
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, os.WriteFile(file, encoded, 0o600)
}
