package demo

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// SteadyTotal is the number of documents of a steady load.
func SteadyTotal(perSecond int, elapsed time.Duration) int64 {
	return steady{perSecond: perSecond}.total(elapsed)
}

// BurstyTotal is the number of documents of a bursty load.
func BurstyTotal(size, perSecond int, first, every, elapsed time.Duration) int64 {
	return bursty{size: size, perSecond: perSecond, first: first, every: every}.total(elapsed)
}

// PauseLoad stops the writes to a service, or resumes them.
func (w *World) PauseLoad(service string, paused bool) { w.writers[service].paused.Store(paused) }

// Settle and OpenLedger are what a replica of payments does for each change.
var (
	Settle     = settle
	OpenLedger = func(endpoint string) (*azcosmos.ContainerClient, error) { return openContainer(endpoint, ledger) }
)
