// Command cosmos runs a program against a fresh stand-in of a Cosmos DB account and ends with the
// program's success or failure: go run ./pkg/emulator/interop/cosmos [-tls] [-v] PROGRAM
// [ARGUMENT...]. With -tls the account serves HTTPS and COSMOS_CA names a file with the certificate
// to trust.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/interop"
)

func main() {
	verbose := flag.Bool("v", false, "log every request")
	secure := flag.Bool("tls", false, "serve HTTPS and put the certificate's file into COSMOS_CA")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: cosmos [-tls] [-v] PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *secure, *verbose, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cosmos:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, secure, verbose bool, program []string) (err error) {
	options := cosmosfake.Options{VersionRetention: time.Hour}
	if verbose {
		options.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	var env []string
	if secure {
		dir, err := os.MkdirTemp("", "feedscale-interop-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		var file string
		if options.TLS, file, err = emulator.LoadCertificate(dir, time.Now()); err != nil {
			return err
		}
		env = append(env, "COSMOS_CA="+file)
	}
	account, err := cosmosfake.Start(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	w, err := newWatcher(account, options.TLS)
	if err != nil {
		return err
	}
	defer w.transport.CloseIdleConnections()
	more := map[string]interop.Request{
		"lag":    func(words []string) (string, error) { return w.lag(ctx, words) },
		"status": func(words []string) (string, error) { return w.status(ctx, words) },
	}
	return interop.Conduct(ctx, account, more, os.Stderr, env, program[0], program[1:]...)
}
