package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// shardConnection is the connection of the shard queue, which function.json of the function shard names, too.
const shardConnection = "FEEDSCALE_SHARDS"

func parseShardQueue(lookup func(string) (string, bool)) func(string) (Events, error) {
	return func(text string) (Events, error) {
		connection, err := ParseServiceBusConnection(lookup, shardConnection, text) // also without a queue: then its settings are not unknown
		if text == "" {
			return Events{}, nil
		}
		if !queueName.MatchString(text) {
			return Events{}, fmt.Errorf("%s is not the name of a queue; %s", yamltree.Quote(text), queueForm)
		}
		return Events{Queue: text, ServiceBus: connection}, err
	}
}

// checkShards reports a shard queue from which nothing takes, since the function shard is not staged.
func (in Input) checkShards(e *environment, s Settings, mistakes *Mistakes) {
	root, _ := e.lookup(appRoot)
	staged := func(function string) error {
		_, err := in.ReadFile(filepath.Join(root, function, "function.json"))
		return err
	}
	if s.Shards.Queue != "" && staged("poll") == nil && errors.Is(staged("shard"), fs.ErrNotExist) {
		mistakes.Add(Mistake{Field: "FEEDSCALE_SHARD_QUEUE", Text: "is set, and the function shard, which takes from that queue, is not staged; allowed are an app staged by make dist FANOUT=1, or no queue"})
	}
}
