package containerapp

import (
	"cmp"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/feedscale/feedscale/pkg/actions"
)

// Kind describes this action to a program that offers it.
func Kind() actions.Kind {
	return actions.Kind{
		Name: "containerapp", Summary: "replica bounds",
		Caution: "Container Apps makes a new revision of every change of scale bounds, and replaces the replicas of the old one: a scale rule on a signal queue changes the count alone (https://github.com/feedscale/feedscale/blob/main/docs/signal-queue.md)",
		Flags:   []actions.Flag{{Name: "arm-endpoint", Usage: "Azure Resource Manager of containerapp, in a national cloud (default https://management.azure.com)"}},
		New: func(o actions.Options) (actions.Action, error) {
			endpoint := o.Flag("arm-endpoint")
			if endpoint != "" && !isServer(endpoint) {
				return nil, errors.New("--arm-endpoint: is not that of an Azure Resource Manager; allowed is https://HOST or https://HOST:PORT, such as https://management.usgovcloudapi.net")
			}
			identity, err := o.Identity()
			if err != nil {
				return nil, err
			}
			return New(identity, Options{Endpoint: endpoint})
		},
	}
}

// isServer reports whether an address is https://HOST[:PORT] and nothing more.
func isServer(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || !strings.EqualFold("https://"+u.Host, strings.TrimSuffix(address, "/")) {
		return false
	}
	_, err = strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	return err == nil
}
