package functionshost

import (
	"fmt"
	"regexp"
	"strings"
)

// expand replaces %NAME% by the setting of that name and leaves the others as
// they are, which is what the host does to paths.
func expand(text string, settings map[string]string) string {
	return placeholders().ReplaceAllStringFunc(text, func(match string) string {
		if value, ok := settings[strings.Trim(match, "%")]; ok {
			return value
		}
		return match
	})
}

// resolve replaces %NAME% in a property of a binding, where an unknown name is
// an error.
func resolve(text string, settings map[string]string) (string, error) {
	resolved := expand(text, settings)
	if missing := placeholders().FindString(resolved); missing != "" {
		return "", fmt.Errorf("%s does not resolve to a value: add the app setting %s", missing, strings.Trim(missing, "%"))
	}
	return resolved, nil
}

func placeholders() *regexp.Regexp { return regexp.MustCompile(`%[^%]+%`) }

// commandLine makes arguments of those in host.json as the host does: each is
// expanded, placeholders that remain are dropped, and all are joined by spaces
// without quotes and split again. An argument with a space in it becomes two.
func commandLine(arguments []string, settings map[string]string) []string {
	expanded := make([]string, len(arguments))
	for i, argument := range arguments {
		expanded[i] = placeholders().ReplaceAllString(expand(argument, settings), "")
	}
	return splitArguments(strings.Join(expanded, " "))
}

// splitArguments splits at spaces outside of double quotes.
func splitArguments(line string) []string {
	var (
		arguments      []string
		current        strings.Builder
		quoted, inside bool
		finish         = func() { arguments = append(arguments, current.String()); current.Reset(); inside = false }
	)
	for _, c := range line {
		switch {
		case c == '"':
			quoted, inside = !quoted, true
		case (c == ' ' || c == '\t') && !quoted:
			if inside {
				finish()
			}
		default:
			current.WriteRune(c)
			inside = true
		}
	}
	if inside {
		finish()
	}
	return arguments
}
