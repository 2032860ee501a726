package leasefake

import "time"

// Info is the marker that every SDK leaves beside the leases of a prefix once
// it has created them.
func Info(prefix string) map[string]any {
	return map[string]any{"id": prefix + ".info"}
}

// Lock is what a host keeps beside the leases of a prefix while it creates
// them; the account deletes it after the time to live, in whole seconds.
func Lock(prefix string, timeToLive time.Duration) map[string]any {
	return map[string]any{"id": prefix + ".lock", "ttl": int(timeToLive.Seconds())}
}
