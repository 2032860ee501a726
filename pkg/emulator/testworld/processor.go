package testworld

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/lifeline"
)

// Line is a transport to the account that the end of the test cuts.
func (w *World) Line() *lifeline.Line {
	line := lifeline.New(w.Transport)
	w.t.Cleanup(line.Cut)
	return line
}

// ProcessorClient is a client for a change feed processor.
func (w *World) ProcessorClient(line *lifeline.Line) *azcosmos.Client {
	w.t.Helper()
	client, err := azcosmos.NewClientFromConnectionString(w.Account.ConnectionString(),
		changefeedprocessor.ClientOptions(&azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: line}}))
	Must(w.t, err)
	w.t.Cleanup(client.Close)
	return client
}
