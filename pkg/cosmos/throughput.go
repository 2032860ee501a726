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

	offer azcosmos.ThroughputProperties // zero if Azure Resource Manager was asked
}

// ReadThroughput reads the throughput of a container, or of a database if c has no ID. It takes a
// key: the data plane lets no identity read offers. The error is a *refusal.Error, of kind "serverless" or
// "no throughput" if there is none to read, or says what to do. It asks the region that takes
// writes.
func (a *Account) ReadThroughput(ctx context.Context, c Container) (Throughput, error) {
	return askOffer(ctx, a, &call{about: Subject{Container: c, Doing: Reading}}, nil, nil)
}

// ReplaceThroughput replaces a throughput, as ReadThroughput returned it, by so many request units a
// second. Manual stays manual, and autoscaled autoscaled. The error is a *refusal.Error of kind "changed" if
// it is no longer what was read, and "not allowed" if the service does not allow it.
func (a *Account) ReplaceThroughput(ctx context.Context, c Container, from Throughput, ruPerSecond int) (Throughput, error) {
	asked := call{about: Subject{Container: c, Doing: Replacing}}
	wanted := azcosmos.NewManualThroughputProperties(int32(ruPerSecond))
	if from.Autoscale {
		wanted = azcosmos.NewAutoscaleThroughputProperties(int32(ruPerSecond))
	}
	if increment, ok := from.offer.AutoscaleIncrement(); ok && increment > 0 {
		wanted = azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(int32(ruPerSecond), increment)
	}
	return askOffer(ctx, a, &asked, &wanted, from.offer.ETag)
}

// askOffer reads the throughput of a container or a database, and replaces it if one is wanted.
func askOffer(ctx context.Context, a *Account, asked *call, wanted *azcosmos.ThroughputProperties, etag *azcore.ETag) (t Throughput, err error) {
	var of interface {
		ReadThroughput(context.Context, *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error)
		ReplaceThroughput(context.Context, azcosmos.ThroughputProperties, *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error)
	}
	if c := asked.about.Container; c.ID == "" {
		of, err = a.sdk.NewDatabase(c.Database)
	} else {
		of, err = a.sdk.NewContainer(c.Database, c.ID)
	}
	if err != nil {
		return t, err
	}
	var response azcosmos.ThroughputResponse
	if wanted == nil {
		response, err = of.ReadThroughput(asked.in(ctx), nil)
	} else {
		response, err = of.ReplaceThroughput(asked.in(ctx), *wanted, &azcosmos.ThroughputOptions{IfMatchEtag: etag})
	}
	if none, ok := errors.AsType[*azcore.ResponseError](err); ok && none.RawResponse != nil {
		// azcosmos makes this error of an empty list of offers.
		return t, a.noThroughput(asked.about)
	}
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
		return Throughput{}, fmt.Errorf("account %s: the answer about the throughput of %s is no offer with a throughput and an _etag", a.host, asked.about.Named())
	}
	return t, nil
}
