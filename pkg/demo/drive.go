package demo

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// driven is how many changes per second the replica of Drive handles.
const driven = 40

// Drive puts a container under load until ctx ends. It writes perSecond orders a second, and runs
// one replica that handles 40 a second, with its leases in the container leases of the same
// database. The replica has no processor name. The error says what could not be written.
func Drive(ctx context.Context, account *cosmosfake.Server, database, container string, perSecond int, log *slog.Logger) error {
	ctx, end := context.WithCancel(ctx)
	s := service{database: database, name: container, load: steady{perSecond}, document: newOrder, throughput: driven}
	f := &fleet{service: s, account: account.ConnectionString(), network: &http.Transport{}, log: log}
	f.scale(ctx, 1)
	defer f.ended.Wait()
	defer end()
	return (&writer{random: rand.New(rand.NewPCG(1, 1)), now: time.Now}).run(ctx, account, s)
}
