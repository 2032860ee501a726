package cli_test

import (
	"regexp"
	"strings"
)

// volatile is what neither the test nor the shop decides, in the group of each expression: the ports
// of listeners, request charges, which are up to the stand-in's meter, and the resource ids that an
// account makes up.
var volatile = []*regexp.Regexp{
	regexp.MustCompile(`(?:127\.0\.0\.1:|port )(\d+)`),
	regexp.MustCompile(`(\d+\.\d) RU`),
	regexp.MustCompile(`(?:  |m)(\d+\.\d)(?:  |\n|\x1b)`), // in a column
	regexp.MustCompile(`([A-Za-z0-9+-]{6}==(?:[_/][A-Za-z0-9+-]{11}=)?)`),
}

var chargeInJSON = regexp.MustCompile(`"requestCharge":[0-9.]+`)

// masked is a text that is the same in every run: what is volatile has a # for each letter and digit,
// so that the columns stay where they are, and one alone in JSON.
func masked(text string) string {
	shown := []byte(text)
	for _, what := range volatile {
		for _, found := range what.FindAllStringSubmatchIndex(text, -1) {
			for i := found[2]; i < found[3]; i++ {
				if !strings.ContainsRune(".=_/", rune(shown[i])) {
					shown[i] = '#'
				}
			}
		}
	}
	return chargeInJSON.ReplaceAllString(string(shown), `"requestCharge":#`)
}
