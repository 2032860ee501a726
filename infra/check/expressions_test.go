package check_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// evaluator computes variables of a template as Azure does, as far as the checks of parameters
// need.
type evaluator struct {
	t      *testing.T
	root   *node
	values map[string]any // parameters, and the parameters of lambdas
}

func (e evaluator) eval(n *node) any {
	switch n.Type {
	case "string":
		var text strings.Builder
		for _, part := range n.Children {
			if part.Type == "interpolation" {
				text.WriteString(e.eval(part.Children[0]).(string))
			} else {
				text.WriteString(part.Text)
			}
		}
		return text.String() + strings.Trim(n.Text, "'")
	case "boolean":
		return n.Text == "true"
	case "array":
		list := []any{}
		for _, c := range n.Children {
			list = append(list, e.eval(c))
		}
		return list
	case "identifier":
		if value, ok := e.values[n.Text]; ok {
			return value
		}
		d, _ := declared(e.t, e.root, n.Text, "")
		return e.eval(d.Children[1])
	case "member_expression":
		return e.eval(n.Children[0]).(map[string]any)[n.Children[1].Text]
	case "unary_expression":
		return !e.eval(n.Children[0]).(bool)
	case "binary_expression": // only the operator ??
		if left := e.eval(n.Children[0]); left != nil {
			return left
		}
		return e.eval(n.Children[1])
	case "ternary_expression":
		if e.eval(n.Children[0]).(bool) {
			return e.eval(n.Children[1])
		}
		return e.eval(n.Children[2])
	case "lambda_expression": // values has the parameter
		return e.eval(n.Children[1])
	case "call_expression":
		return e.call(n.Children[0].Text, n.Children[1].Children)
	}
	e.t.Fatalf("line %d: a %s is not evaluated", n.Line, n.Type)
	return nil
}

func (e evaluator) call(function string, arguments []*node) any {
	if function == "map" || function == "filter" {
		result := []any{}
		for _, item := range e.eval(arguments[0]).([]any) {
			values := maps.Clone(e.values)
			values[lambdaNames(arguments[1])[0]] = item
			switch value := (evaluator{e.t, e.root, values}).eval(arguments[1]); {
			case function == "map":
				result = append(result, value)
			case value.(bool):
				result = append(result, item)
			}
		}
		return result
	}
	given := make([]any, len(arguments))
	for i, a := range arguments {
		if a.Type != "number" {
			given[i] = e.eval(a)
		}
	}
	switch function {
	case "empty":
		list, isList := given[0].([]any)
		return isList && len(list) == 0 || given[0] == ""
	case "toLower":
		return strings.ToLower(given[0].(string))
	case "take": // only a single character
		return given[0].(string)[:1]
	case "contains":
		return slices.Contains(given[0].([]any), given[1])
	case "join":
		return strings.Join(texts(given[0]), given[1].(string))
	case "split":
		separators, isList := given[1].([]any)
		if !isList {
			separators = given[1:]
		}
		text := given[0].(string)
		for _, s := range separators {
			text = strings.ReplaceAll(text, s.(string), "\x00")
		}
		list := []any{}
		for _, part := range strings.Split(text, "\x00") {
			list = append(list, part)
		}
		return list
	case "concat", "union":
		list := []any{}
		for _, g := range given {
			for _, item := range g.([]any) {
				if function == "concat" || !slices.Contains(list, item) {
					list = append(list, item)
				}
			}
		}
		return list
	case "items":
		list := []any{}
		for _, key := range slices.Sorted(maps.Keys(given[0].(map[string]any))) {
			list = append(list, map[string]any{"key": key, "value": given[0].(map[string]any)[key]})
		}
		return list
	}
	e.t.Fatalf("%s() is not evaluated", function)
	return nil
}

func texts(list any) (all []string) {
	for _, item := range list.([]any) {
		all = append(all, item.(string))
	}
	return all
}

// TestAMistakeEndsTheDeploymentBeforeItMakesAnything: the message names each mistake.
func TestAMistakeEndsTheDeploymentBeforeItMakesAnything(t *testing.T) {
	t.Parallel()
	root := bicep(t)["main.bicep"]
	account := func(name string, endpoint any) []any {
		return []any{map[string]any{"name": "COSMOS"}, map[string]any{"name": name, "privateEndpoint": endpoint}}
	}
	for name, tt := range map[string]struct {
		given map[string]any
		want  []string
	}{
		"none":                             {},
		"all characters that are allowed":  {given: map[string]any{"name": "feed-scale-2"}},
		"a name with capitals and a _":     {map[string]any{"name": "Feed_Scale"}, []string{"name: Feed_Scale is not lower-case letters, digits and hyphens."}},
		"a connection with a hyphen":       {map[string]any{"cosmosAccounts": account("COS-MOS", nil)}, []string{"cosmosAccounts: COS-MOS is not letters and digits, a letter first."}},
		"a connection with a digit first":  {map[string]any{"cosmosAccounts": account("2COSMOS", nil)}, []string{"cosmosAccounts: 2COSMOS is not letters and digits, a letter first."}},
		"a connection with a digit later":  {given: map[string]any{"cosmosAccounts": account("Cosmos2", false)}},
		"an endpoint without a network":    {map[string]any{"cosmosAccounts": account("SHOP", true)}, []string{"cosmosAccounts: privateEndpoint of SHOP takes network = private."}},
		"an endpoint in a private network": {given: map[string]any{"cosmosAccounts": account("SHOP", true), "isPrivate": true}},
		"a signal queue of the events":     {map[string]any{"signalQueues": []any{"orders-replicas", "Scale-Events"}}, []string{"signalQueues: Scale-Events is the name of another queue or topic."}},
		"a zone that nothing is found by":  {map[string]any{"privateDnsZoneIds": map[string]any{"blob": "id", "queue": "id"}}, []string{"privateDnsZoneIds: queue is none of blob, table, namespace and Sql."}},
		"each of several, in one go":       {map[string]any{"name": "a.b", "signalQueues": []any{"shards"}}, []string{"name: a.b is not lower-case letters, digits and hyphens.", "signalQueues: shards is the name of another queue or topic."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := map[string]any{
				"name": "feedscale", "cosmosAccounts": account("SHOP", nil), "isPrivate": false, "signalQueues": []any{"orders-replicas"},
				"privateDnsZoneIds": map[string]any{"Sql": "id"},
			}
			maps.Copy(values, tt.given)
			d, _ := declared(t, root, "mistakes", "")
			if got := texts(evaluator{t, root, values}.eval(d.Children[1])); !slices.Equal(got, tt.want) {
				t.Errorf("mistakes are %q, want %q", got, tt.want)
			}
		})
	}
	// Every resource has these tags.
	if tags, _ := declared(t, root, "allTags", ""); text(tags.Children[1]) != "empty mistakes tags fail join mistakes ' '" {
		t.Errorf("allTags is %q, which fails with no mistake", text(tags.Children[1]))
	}
	for _, d := range root.Children {
		if tags := text(body(d).at("params", "tags")) + text(body(d).at("tags")); d.Type != "decorators" && tags != "" && tags != "allTags" {
			t.Errorf("line %d: tags is %q, so that it is made in spite of a mistake", d.Line, tags)
		}
	}
}
