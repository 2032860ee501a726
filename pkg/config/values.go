package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// checkValues adds the mistakes of values that no field may have (docs/configure.md, Values that
// are refused everywhere), unless the schema refuses them already.
func (d *documentReader) checkValues(n *yamltree.Node) {
	if wrong := wrongValue(n.Name + "\n" + n.Text()); wrong != "" && !n.Bad {
		n.Bad = true
		d.mistakes.Add(n.Mistake(wrong))
	}
	for _, inner := range slices.Concat(n.Fields, n.Items) {
		d.checkValues(inner)
	}
}

// wrongValue says what is wrong with a text in any place; "" if nothing is.
func wrongValue(text string) string {
	if looksSecret(text) {
		return "looks like a secret, which every event and page would show; " +
			"allowed is the name of a setting in connection, and no key, connection string or signature anywhere in this file"
	}
	return unreplaced(text)
}

// unreplaced says which placeholder a text holds; "" if it holds none.
func unreplaced(text string) string {
	if found := placeholder.FindString(text); found != "" {
		return fmt.Sprintf("holds the placeholder %s, which nothing replaced; allowed is the value itself", yamltree.Quote(found))
	}
	return ""
}

// placeholder finds the placeholders of shells, Docker Compose, Kubernetes and Helm.
var placeholder = regexp.MustCompile(`\$\{[^}\n]*\}|\$\([A-Za-z_][A-Za-z0-9_]*\)|\{\{[^}\n]*\}\}`)

var (
	secretField = regexp.MustCompile(`(?i)\b(AccountKey|SharedAccessKey|sig)=`)
	// accountKey finds the 64 bytes of an account key in base64, with or without their padding.
	accountKey = regexp.MustCompile(`(?:^|[^A-Za-z0-9+/=])([A-Za-z0-9+/]{86}(?:[A-Za-z0-9+/=]{2})?)(?:$|[^A-Za-z0-9+/=])`)
)

// looksSecret reports whether a text holds a secret of Azure. A digest has letters of one case.
func looksSecret(text string) bool {
	return secretField.MatchString(text) || slices.ContainsFunc(accountKey.FindAllStringSubmatch(text, -1), func(m []string) bool {
		return m[1] != strings.ToLower(m[1]) && m[1] != strings.ToUpper(m[1])
	})
}
