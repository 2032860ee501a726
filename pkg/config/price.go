package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Price is an amount of money. Zero is no price, rather than one of nothing.
type Price struct {
	Amount   float64
	Currency string // as it is to be shown
}

const (
	mostPrice    = 1e6
	mostCurrency = 8 // characters
)

// parsePrice reads an amount and its currency. There is no default: prices differ by region, by the
// number of regions, by offer and by contract.
func parsePrice(text string) (Price, error) {
	if text == "" {
		return Price{}, nil
	}
	fields := strings.Fields(text)
	if len(fields) == 2 && utf8.RuneCountInString(fields[1]) <= mostCurrency {
		if n, err := strconv.ParseFloat(fields[0], 64); err == nil && n > 0 && n <= mostPrice {
			return Price{n, fields[1]}, nil
		}
	}
	return Price{}, fmt.Errorf("%s is no price; allowed is the price of 100 RU/s for an hour and its currency, as in 0.008 USD", yamltree.Quote(text))
}
