package cosmos

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Throughput is what a container, or a database, is provisioned with.
type Throughput struct {
	RUPerSecond int  // request units a second; of autoscaled throughput its maximum
	Autoscale   bool // it scales itself, between a tenth of RUPerSecond and all of it
	Minimum     int  // the least that the service allows it to be; 0 if it does not say
	Pending     bool // the service is not done with making it so

	// Usage is what the call that returns it has cost, also if that fails. Requests of Azure Resource Manager
	// are none of the account's: they do not count.
	Usage Usage

	offer azcosmos.ThroughputProperties // zero if Azure Resource Manager was asked
}

// ReadThroughput reads the throughput of a container, or of a database if c has no ID. It takes a
// key: the data plane lets no identity read offers. The error is a *Refusal, of kind Serverless,
// SharedThroughput or NoThroughput if there is none to read, or says what to do. It asks the region that
// takes writes, since another one may still tell what was there before.
func (a *Account) ReadThroughput(ctx context.Context, c Container) (t Throughput, err error) {
	asked := call{primary: true}
	defer func() { t.Usage = asked.Usage }()
	return ownOrShared(c, func(about Subject) (Throughput, error) {
		asked.about = about
		return a.readThroughput(ctx, &asked)
	})
}

// ownOrShared reads the throughput of a container. If it has none, the database says whether it shares that.
func ownOrShared(c Container, read func(about Subject) (Throughput, error)) (Throughput, error) {
	t, err := read(Subject{Container: c, Doing: reading})
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok || refusal.Kind != NoThroughput || c.ID == "" {
		return t, err
	}
	if _, err := read(Subject{Container: Container{Database: c.Database}, Doing: reading}); err == nil {
		refusal.Kind = SharedThroughput
	}
	return t, refusal
}

func (a *client) readThroughput(ctx context.Context, asked *call) (Throughput, error) {
	of, err := a.throughputOf(asked.about.Container)
	if err != nil {
		return Throughput{}, err
	}
	response, err := of.ReadThroughput(asked.in(ctx), nil)
	if none, ok := errors.AsType[*azcore.ResponseError](err); ok && none.RawResponse != nil {
		// azcosmos makes this error of an empty list of offers.
		return Throughput{}, &Refusal{Kind: NoThroughput, Account: a.host, Setting: a.setting, Subject: asked.about}
	}
	return a.throughput(asked, response, err)
}

// ReplaceThroughput replaces a throughput, as ReadThroughput returned it, by so many request units a
// second. Manual stays manual, and autoscaled autoscaled. The error is a *Refusal of kind Changed if
// it is no longer what was read, and NotAllowed if the service does not allow it.
func (a *Account) ReplaceThroughput(ctx context.Context, c Container, from Throughput, ruPerSecond int) (t Throughput, err error) {
	asked := call{about: Subject{Container: c, Doing: replacing}, primary: true}
	defer func() { t.Usage = asked.Usage }()
	of, err := a.throughputOf(c)
	if err != nil {
		return Throughput{}, err
	}
	wanted := azcosmos.NewManualThroughputProperties(int32(ruPerSecond))
	if from.Autoscale {
		wanted = azcosmos.NewAutoscaleThroughputProperties(int32(ruPerSecond))
	}
	if increment, ok := from.offer.AutoscaleIncrement(); ok && increment > 0 {
		wanted = azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(int32(ruPerSecond), increment)
	}
	response, err := of.ReplaceThroughput(asked.in(ctx), wanted, &azcosmos.ThroughputOptions{IfMatchEtag: from.offer.ETag})
	return a.throughput(&asked, response, err)
}

// throughputClient is what azcosmos has of a container and of a database alike.
type throughputClient interface {
	ReadThroughput(context.Context, *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error)
	ReplaceThroughput(context.Context, azcosmos.ThroughputProperties, *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error)
}

func (a *client) throughputOf(c Container) (throughputClient, error) {
	if c.ID == "" {
		return a.sdk.NewDatabase(c.Database)
	}
	return a.sdk.NewContainer(c.Database, c.ID)
}

// throughput reads an answer of azcosmos.
func (a *client) throughput(asked *call, response azcosmos.ThroughputResponse, err error) (t Throughput, _ error) {
	if err != nil {
		return t, a.failed(asked, err)
	}
	t.offer, t.Pending = *response.ThroughputProperties, response.IsReplacePending
	if response.MinThroughput != nil {
		t.Minimum = int(*response.MinThroughput)
	}
	most, _ := t.offer.AutoscaleMaxThroughput()
	manual, _ := t.offer.ManualThroughput()
	if t.RUPerSecond, t.Autoscale = int(manual), most > 0; t.Autoscale {
		t.RUPerSecond = int(most)
	}
	if etag := t.offer.ETag; t.RUPerSecond <= 0 || etag == nil || *etag == "" {
		return Throughput{}, fmt.Errorf("account %s: the answer about the throughput of %s is no offer with a throughput and an _etag", a.host, asked.about.named())
	}
	return t, nil
}
