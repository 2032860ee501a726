package webhook

import (
	"errors"
	"fmt"

	"github.com/feedscale/feedscale/pkg/actions"
)

// Kind describes this action to a program that offers it. Without a secret in the options, events
// are not signed.
func Kind() actions.Kind {
	return actions.Kind{
		Name: "webhook", Summary: "POST",
		Flags: []actions.Flag{{Name: "url", Usage: "where webhook posts to; the setting FEEDSCALE_WEBHOOK_SECRET signs"}},
		New:   fromOptions,
	}
}

func fromOptions(o actions.Options) (actions.Action, error) {
	var (
		options   Options
		secretErr error
	)
	if o.Secret != "" {
		if options.Key, secretErr = ParseSecret(o.Secret); secretErr != nil {
			secretErr = fmt.Errorf("FEEDSCALE_WEBHOOK_SECRET: %w", secretErr)
		}
	}
	address := o.Flag("url")
	if address == "" {
		return nil, errors.Join(errors.New("--url: is missing; --action webhook needs the address to post to, as in --url https://HOST/PATH"), secretErr)
	}
	action, err := New(address, options)
	if err != nil {
		err = fmt.Errorf("--url: %w", err)
	}
	if err = errors.Join(err, secretErr); err != nil {
		return nil, err
	}
	return action, nil
}
