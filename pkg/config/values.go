package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// checkValues adds the mistakes of values that no field may have (docs/configure.md, Values that
// are refused everywhere), unless the schema refuses them already.
func (d *documentReader) checkValues(file string, n *yamltree.Node) {
	text := n.Name + "\n" + n.Text()
	if wrong := cmp.Or(wrongValue(text), invisible(file, text)); wrong != "" && !n.Bad {
		n.Bad = true
		d.mistakes.Add(n.Mistake(wrong))
	}
	for _, inner := range slices.Concat(n.Fields, n.Items) {
		d.checkValues(file, inner)
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

// invisible says which character of a text is invisible in the file; "" if there is none. An escape
// is visible: `feedscale init` writes one for a name that has such a character.
func invisible(file, text string) string {
	at := strings.IndexFunc(text, func(r rune) bool { return unicode.Is(unicode.Cf, r) && strings.ContainsRune(file, r) })
	if at < 0 {
		return ""
	}
	r, _ := utf8.DecodeRuneInString(text[at:])
	_, before, _ := strings.Cut(text[:at], "\n")
	return fmt.Sprintf("holds an invisible character (%U) after %s; type the text anew, or write an escape in double quotes", r, yamltree.Quote(before))
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
