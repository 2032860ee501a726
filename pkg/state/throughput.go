package state

import "github.com/feedscale/feedscale/pkg/scaling"

// ThroughputName is the name under which a Store keeps what is remembered of the throughput of
// containers. No processor has it: their names begin with a letter or a digit.
const ThroughputName = ".throughput"

// Provisioning is what is remembered of the throughput of one container from before it is changed for the
// first time until what was found is given back (docs/throughput.md).
type Provisioning struct {
	Setting   string `json:"setting"` // name of the setting with the connection, which is still needed when no processor names it
	Database  string `json:"database"`
	Container string `json:"container,omitempty"` // "" = the database itself
	Autoscale bool   `json:"autoscale,omitempty"`

	Before int `json:"before"`           // request units a second that were found
	Was    int `json:"was"`              // before the last change; that of Set once it was seen to be made
	Set    int `json:"set"`              // by the last change
	Theirs int `json:"theirs,omitempty"` // that somebody else provisioned, and that is left alone; 0 = nobody did

	Memory scaling.ThroughputMemory `json:"memory,omitzero"`
}
